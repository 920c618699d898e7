import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.connect.mirror.Heartbeat;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.OffsetSync;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/**
 * What MirrorMaker 2's own client library makes of a cluster that Twinlog mirrors to, as one line of JSON.
 *
 * <p>Its argument is a JSON object: client (the properties of the library's client, of the target), source (the source's
 * bootstrap servers), alias (the source's), hopsFrom (aliases that may be further upstream), group, heartbeats and offsetSyncs (names of topics on the target and on the
 * source).
 */
public final class MirrorClientCheck {
    private static final Duration TIMEOUT = Duration.ofSeconds(30);

    private MirrorClientCheck() {}

    @SuppressWarnings("unchecked")
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        Map<String, Object> asked = json.readValue(arguments[0], Map.class);
        Map<String, Object> properties = (Map<String, Object>) asked.get("client");
        String alias = (String) asked.get("alias");
        Map<String, Object> found = new TreeMap<>();
        found.put("upstream", RemoteClusterUtils.upstreamClusters(properties));
        Map<String, Integer> hops = new TreeMap<>();
        for (String upstream : (List<String>) asked.get("hopsFrom")) {
            hops.put(upstream, RemoteClusterUtils.replicationHops(properties, upstream));
        }
        found.put("hops", hops);
        found.put("heartbeatTopics", RemoteClusterUtils.heartbeatTopics(properties));
        found.put("checkpointTopics", RemoteClusterUtils.checkpointTopics(properties));
        try (MirrorClient client = new MirrorClient(properties)) {
            found.put("remoteTopics", client.remoteTopics(alias));
        }
        Map<String, Long> translated = new TreeMap<>();
        RemoteClusterUtils.translateOffsets(properties, alias, (String) asked.get("group"), TIMEOUT)
                .forEach((partition, position) -> translated.put(partition.toString(), position.offset()));
        found.put("translated", translated);
        found.put("heartbeats", read((String) properties.get("bootstrap.servers"), (String) asked.get("heartbeats"),
                record -> {
                    Heartbeat one = Heartbeat.deserializeRecord(record);
                    return List.of(one.sourceClusterAlias(), one.targetClusterAlias(), one.timestamp());
                }));
        found.put("offsetSyncs", read((String) asked.get("source"), (String) asked.get("offsetSyncs"), record -> {
            OffsetSync one = OffsetSync.deserializeRecord(record);
            return List.of(one.topicPartition().toString(), one.upstreamOffset(), one.downstreamOffset());
        }));
        System.out.println(json.writeValueAsString(found));
    }

    /** Every record of a topic's only partition. */
    private static List<Object> read(
            String servers, String topic, Function<ConsumerRecord<byte[], byte[]>, Object> decoded) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", servers);
        settings.put("isolation.level", "read_committed");
        List<Object> found = new ArrayList<>();
        List<TopicPartition> partitions = List.of(new TopicPartition(topic, 0));
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long end = consumer.endOffsets(partitions).get(partitions.get(0));
            while (consumer.position(partitions.get(0)) < end) {
                consumer.poll(TIMEOUT).forEach(record -> found.add(decoded.apply(record)));
            }
        }
        return found;
    }
}
