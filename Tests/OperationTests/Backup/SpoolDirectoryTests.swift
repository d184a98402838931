import ArchiveStore
import SystemIO
import TestSupport
import Testing

/// Temporary copies of databases are stored on a disk.
@Suite(.spreadScans) struct SpoolDirectoryTests {
  @Test func aMissingCacheDirectoryIsCreated() throws {
    let temporary = try TemporaryDirectory("spool")
    let cache = temporary.path("home/.cache")
    #expect(try SpoolDirectory.open(cache: cache).path == cache)
    #expect(try Directory.open(path: cache).status().permissions == 0o700)
  }

  @Test func withoutACacheTheSpoolIsNotInMemory() throws {
    let temporary = try TemporaryDirectory("spool")
    try temporary.write("a file", at: "cache")
    for cache in [nil, temporary.path("cache")] {
      #expect(try SpoolDirectory.open(cache: cache).path == "/var/tmp")
    }
  }
}
