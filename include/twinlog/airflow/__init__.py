"""Between Airflow and the operations: its settings, its connections, a DAG's frame, and the page.

Nothing in here is needed by the command line, and nothing in here decides anything about mirroring.
A Kafka client or Spark is imported by a task while it runs, never while a DAG file is parsed.
"""
