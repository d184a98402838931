import Backup
import DeviceScan
import SystemIO
import TestSupport
import Testing

/// A directory is recognized as a repository by the content of its `repository.json`, not by the
/// file's name.
@Suite(.spreadScans) struct RepositoryFileTests {
  private static let id = String(repeating: "0123456789abcdef", count: 4)

  @Test(arguments: [
    "{}", #"{"format": "mine"}"#, #"{"format": "sandboxctl-repository"}"#,
    #"{"format": "sandboxctl-repository", "id": "mine"}"#, "no JSON",
  ])
  func anotherFileNamedRepositoryJSONIsStoredWithItsDirectory(_ text: String) throws {
    let fixture = try Fixture(inMemory: true)
    try fixture.directory.write(text, at: "tree/project/repository.json")
    try fixture.directory.write("source", at: "tree/project/main.swift")
    let report = try fixture.backup()
    #expect(report.warnings.isEmpty)
    _ = try fixture.restore(report)
    #expect(try fixture.names("back/project") == ["main.swift", "repository.json"])
  }

  @Test func aPipeNamedRepositoryJSONDoesNotBlock() throws {
    let fixture = try Fixture(inMemory: true)
    _ = try Directory.make(path: fixture.directory.path("tree/project"))
    #expect(
      try Program.run("mkfifo", ["\(fixture.directory.path("tree/project/repository.json"))"]).code
        == 0
    )
    try fixture.directory.write("source", at: "tree/project/main.swift")
    #expect(try fixture.backup().files == 1)
  }

  /// The directory has enough files to be listed in several batches, with subdirectories in an
  /// earlier batch.
  @Test func aRepositoryIsExcludedCompletely() throws {
    let fixture = try Fixture(inMemory: true)
    let made = try Directory.make(path: fixture.directory.path("tree/large"))
    for number in 0..<3000 { _ = try made.create(ByteString("a long name of a file, \(number)")) }
    for number in 0..<50 {
      try fixture.directory.write("x", at: ByteString("tree/large/d\(number)/file"))
    }
    try fixture.directory.write(
      #"{"format": "sandboxctl-repository", "id": "\#(Self.id)"}"#, at: "tree/large/repository.json"
    )
    try fixture.directory.write("kept", at: "tree/file")
    let scan = try fixture.scan()
    let stored = scan.selections.filter { $0.value != .excluded }.keys
    #expect(Set(stored) == ["", "file"], "\(stored.count)")
    #expect(scan.containers.first?.repositories == ["large"])
  }
}
