"""The tasks of a flow's DAGs: each calls one operation, shows its result, and adds nothing.

A task is given the name of its flow and reads the topology when it runs: what is copied into a DAG when it is parsed
would be stale by then, and Airflow would store it.
"""
