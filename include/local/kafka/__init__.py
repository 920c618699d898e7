"""Real Kafka on this machine: `start([KafkaSpec("nyc"), KafkaSpec("lon")], folder)`."""

from __future__ import annotations

from local.kafka.cluster import KafkaCluster, KafkaClusters, start
from local.kafka.spec import PLAINTEXT, SASL_SSL, TLS, KafkaSpec

__all__ = ["PLAINTEXT", "SASL_SSL", "TLS", "KafkaCluster", "KafkaClusters", "KafkaSpec", "start"]
