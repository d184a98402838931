import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// A directory is taken for a repository by what its `repository.json` says, not by the file's name.
@Suite(.spreadScans) struct RepositoryFileTests {
  private static let id = String(repeating: "0123456789abcdef", count: 4)

  @Test(arguments: [
    "{}", #"{"format": "mine"}"#, #"{"format": "sandboxctl-repository"}"#,
    #"{"format": "sandboxctl-repository", "id": "mine"}"#, "no JSON",
  ])
  func aUsersOwnFileOfThatNameIsStoredWithItsDirectory(_ text: String) throws {
    let rig = try Fixture(inMemory: true)
    try rig.directory.write(text, at: "tree/project/repository.json")
    try rig.directory.write("source", at: "tree/project/main.swift")
    let report = try rig.backup()
    #expect(report.warnings.isEmpty)
    _ = try rig.restore(report)
    #expect(try rig.names("back/project") == ["main.swift", "repository.json"])
  }

  @Test func aPipeOfThatNameIsNotWaitedFor() throws {
    let rig = try Fixture(inMemory: true)
    _ = try Directory.make(path: rig.directory.path("tree/project"))
    #expect(
      try Program.run("mkfifo", ["\(rig.directory.path("tree/project/repository.json"))"]).code == 0
    )
    try rig.directory.write("source", at: "tree/project/main.swift")
    #expect(try rig.backup().files == 1)
  }

  /// So many files that they are listed in several batches, and directories that an earlier one has.
  @Test func aRepositoryIsLeftOutWhole() throws {
    let rig = try Fixture(inMemory: true)
    let made = try Directory.make(path: rig.directory.path("tree/large"))
    for number in 0..<3000 { _ = try made.create(ByteString("a long name of a file, \(number)")) }
    for number in 0..<50 {
      try rig.directory.write("x", at: ByteString("tree/large/d\(number)/file"))
    }
    try rig.directory.write(
      #"{"format": "sandboxctl-repository", "id": "\#(Self.id)"}"#, at: "tree/large/repository.json"
    )
    try rig.directory.write("kept", at: "tree/file")
    let scan = try rig.scan()
    let stored = scan.fates.filter { $0.value != .excluded }.keys
    #expect(Set(stored) == ["", "file"], "\(stored.count)")
    #expect(scan.containers.first?.repositories == ["large"])
  }
}
