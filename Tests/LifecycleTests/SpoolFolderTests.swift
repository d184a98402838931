import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// Copies of databases lie on a disk.
@Suite(.spreadScans) struct SpoolFolderTests {
  @Test func theCacheIsMadeWhereItIsMissing() throws {
    let temporary = try TemporaryFolder("spool")
    let cache = temporary.path("home/.cache")
    #expect(try SpoolFolder.open(cache: cache).path == cache)
    #expect(try Folder.open(path: cache).status().permissions == 0o700)
  }

  @Test func withoutACacheItIsNeverInMemory() throws {
    let temporary = try TemporaryFolder("spool")
    try temporary.write("a file", at: "cache")
    for cache in [nil, temporary.path("cache")] {
      #expect(try SpoolFolder.open(cache: cache).path == "/var/tmp")
    }
  }
}
