import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// A folder is taken for a repository by what its `repository.json` says, not by the file's name.
@Suite(.spreadScans) struct RepositoryFileTests {
  private static let id = String(repeating: "0123456789abcdef", count: 4)

  @Test(arguments: [
    "{}", #"{"format": "mine"}"#, #"{"format": "sandboxctl-repository"}"#,
    #"{"format": "sandboxctl-repository", "id": "mine"}"#, "no JSON",
  ])
  func aUsersOwnFileOfThatNameIsStoredWithItsFolder(_ text: String) throws {
    let rig = try Rig(inMemory: true)
    try rig.folder.write(text, at: "tree/project/repository.json")
    try rig.folder.write("source", at: "tree/project/main.swift")
    let report = try rig.backup()
    #expect(report.warnings.isEmpty)
    _ = try rig.restore(report)
    #expect(try rig.names("back/project") == ["main.swift", "repository.json"])
  }

  @Test func aPipeOfThatNameIsNotWaitedFor() throws {
    let rig = try Rig(inMemory: true)
    _ = try Folder.make(path: rig.folder.path("tree/project"))
    #expect(
      try Program.run("mkfifo", ["\(rig.folder.path("tree/project/repository.json"))"]).code == 0)
    try rig.folder.write("source", at: "tree/project/main.swift")
    #expect(try rig.backup().files == 1)
  }

  /// So many files that they are listed in several batches, and folders that an earlier one has.
  @Test func aRepositoryIsLeftOutWhole() throws {
    let rig = try Rig(inMemory: true)
    let made = try Folder.make(path: rig.folder.path("tree/large"))
    for number in 0..<3000 { _ = try made.create(ByteString("a long name of a file, \(number)")) }
    for number in 0..<50 { try rig.folder.write("x", at: ByteString("tree/large/d\(number)/file")) }
    try rig.folder.write(
      #"{"format": "sandboxctl-repository", "id": "\#(Self.id)"}"#, at: "tree/large/repository.json"
    )
    try rig.folder.write("kept", at: "tree/file")
    let scan = try rig.scan()
    let stored = scan.fates.filter { $0.value != .leftOut }.keys
    #expect(Set(stored) == ["", "file"], "\(stored.count)")
    #expect(scan.containers.first?.repositories == ["large"])
  }
}
