import DatabaseCapture
import SystemIO
import Testing

/// The names of logs, journals and indexes of databases.
struct SidecarNameTests {
  @Test(arguments: [
    ("a.db-wal", true), ("a-shm", true), ("x-journal", true), ("-wal", false), ("a.sql", false),
    ("a", false), ("film", false), ("a-WAL", false),
  ]) func sidecarsAreFoundByName(name: String, isSidecar: Bool) {
    #expect(DatabaseMember.mayBeSidecar(Array(name.utf8).span) == isSidecar)
    #expect((DatabaseMember.owner(of: ByteString(name)) != nil) == isSidecar)
  }
}
