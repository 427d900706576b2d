import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/**
 * mongo-java-server: MongoDB's protocol on a store in memory.
 * Usage: Srv ADDRESS PORT. Once it listens, `ready` is the only line on the standard output; SIGTERM ends it.
 */
public class Srv {
    /** As shipped it names a version of the protocol that today's clients refuse. */
    private static final class Version implements MongoVersion {
        public List<Integer> getVersionArray() {
            return List.of(5, 0, 0);
        }

        public int getWireVersion() {
            return 13;
        }

        public String toVersionString() {
            return "5.0.0";
        }
    }

    public static void main(String[] arguments) throws Exception {
        MongoServer server = new MongoServer(new MemoryBackend().version(new Version()));
        server.bind(arguments[0], Integer.parseInt(arguments[1]));
        Runtime.getRuntime().addShutdownHook(new Thread(server::shutdown));
        System.out.println("ready");
        System.out.flush();
        Thread.currentThread().join();
    }
}
