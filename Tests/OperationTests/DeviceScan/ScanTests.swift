import ArchiveStore
import Backup
import DeviceDiscovery
import DeviceScan
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@Suite(.spreadScans) struct ScanTests {
  @Test func anExcludedParentOfAKeptFileIsStoredAlone() throws {
    let fixture = try Fixture()
    try fixture.directory.write("a", at: "tree/out/inner/kept.txt")
    try fixture.directory.write("b", at: "tree/out/gone.txt")
    try fixture.directory.write("c", at: "tree/out/other/gone.txt")
    let selections = try fixture.scan([.exclude("out"), .include("**/kept.txt")]).selections
    #expect(selections["out"] == .parentOnly)
    #expect(selections["out/inner"] == .parentOnly)
    #expect(selections["out/inner/kept.txt"] == .included)
    #expect(selections["out/gone.txt"] == .excluded)
    #expect(selections["out/other"] == .excluded)
    #expect(selections["out/other/gone.txt"] == .excluded)
  }

  @Test func excludedFilesAreCountedByRule() throws {
    let fixture = try Fixture()
    try fixture.directory.write([UInt8](repeating: 1, count: 1000), at: "tree/out/one")
    try fixture.directory.write([UInt8](repeating: 1, count: 500), at: "tree/out/below/two")
    try fixture.directory.write([UInt8](repeating: 1, count: 30), at: "tree/kept")
    let plan = BackupPlan.make(try fixture.scan([.exclude("out")]))
    #expect(plan.includedTotals.bytes == 30 && plan.includedTotals.files == 1)
    #expect(plan.excludedTotals.bytes == 1500 && plan.excludedTotals.files == 2)
    #expect(plan.excluded.map(\.path) == ["folders/tree/out"])
    #expect(plan.excluded.map(\.rule) == ["exclude-1"])
    #expect(plan.excluded.map(\.bytes) == [1500])
  }

  @Test func theProgramsDirectoriesAndRepositoriesAreNotBackedUp() throws {
    let fixture = try Fixture()
    try fixture.directory.write("x", at: "tree/.sandboxctl/journal/1.json")
    try fixture.directory.write("x", at: "tree/deep/.sandboxctl/mine")
    _ = try Repository.create(
      in: try LocalStorage.create(path: fixture.directory.path("tree/backups")), program: "test")
    try fixture.directory.write(#"{"format":"something else"}"#, at: "tree/other/repository.json")
    let inUse = try Directory.make(path: fixture.directory.path("tree/in use")).status().identity
    let selections = try fixture.scan(options: ScanOptions(excluded: [inUse])).selections
    #expect(selections[".sandboxctl"] == nil)
    #expect(selections["deep/.sandboxctl/mine"] == .included)
    #expect(selections["backups"] == .excluded)
    #expect(selections["backups/packs"] == nil)
    #expect(selections["other/repository.json"] == .included)
    #expect(selections["in use"] == .excluded)
  }

  @Test func aMarkOnADirectoryExcludesEverythingBelow() throws {
    let fixture = try Fixture()
    let data: ByteString =
      "tree/Containers/Data/Application/0A0A0A0A-0000-4000-8000-000000000001"
    try fixture.directory.write("x", at: data.appending("Documents/marked/below/file"))
    try fixture.directory.write("x", at: data.appending("Documents/kept"))
    let documents = try Directory.open(path: fixture.directory.path(data.appending("Documents")))
    try documents.attributes(of: "marked").set(
      "user.com.apple.metadata:com_apple_backup_excludeItem", to: Array("com.apple.backupd".utf8))
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .coreSimulator)
    let scan = DeviceScan.run(device, policy: try Fixture.policy(.coreSimulator))
    #expect(scan.selections["Documents/marked"] == .excluded)
    #expect(scan.selections["Documents/marked/below/file"] == .excluded)
    #expect(scan.selections["Documents/kept"] == .included)
    let container = try #require(scan.containers.first)
    let marked = try #require(container.index(of: "Documents/marked/below/file"))
    let explanation = scan.policy.explain(container.query(marked))
    #expect(explanation.steps.contains { $0.kind == .marker && $0.id == "excluded-from-backup" })
    #expect(explanation.verdicts == container.entries[marked].verdicts)
  }

  /// A lookup of one path reads only its parent directories.
  @Test func aLookupOfOnePathReadsOnlyItsParents() throws {
    let fixture = try Fixture()
    for path: ByteString in ["a/b/file", "a/b/deep/er", "a/other/x", "z/y", "ab/x"] {
      try fixture.directory.write("x", at: ByteString("tree").appending(path))
    }
    var options = ScanOptions()
    options.only = "a/b"
    let selections = try fixture.scan(options: options).selections
    #expect(
      Set(selections.keys) == ["", "a", "a/b", "a/b/file", "a/b/deep", "a/other", "z", "ab"])
  }

  /// As for `classify PATH`: including all entries below the path.
  @Test func aScanOfOnePathReadsItsParentsAndWhatIsBelow() throws {
    let fixture = try Fixture()
    for path: ByteString in ["a/b/file", "a/b/deep/er", "a/other/x", "z/y", "ab/x"] {
      try fixture.directory.write("x", at: ByteString("tree").appending(path))
    }
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    func paths(_ location: ByteString) throws -> Set<ByteString> {
      let scan = DeviceScan.run(
        device, policy: try Fixture.policy(.folder), within: try LogicalPath(location),
        options: ScanOptions())
      return Set(scan.selections.keys)
    }
    #expect(
      try paths("folders/tree/a/b") == [
        "", "a", "a/b", "a/b/file", "a/b/deep", "a/b/deep/er", "a/other", "z", "ab",
      ])
    #expect(try paths("folders/tree") == paths("folders"))
    #expect(try paths("folders").count == 12)
  }

  @Test func aLargeDirectoryIsScannedCompletely() throws {
    let fixture = try Fixture()
    let tree = try Directory.open(path: fixture.directory.path("tree"))
    for number in 0..<5000 { _ = try tree.create(ByteString("file \(number)")) }
    let scan = try fixture.scan()
    #expect(scan.selections.count == 5001)
    #expect(Set(scan.selections.values) == [.included])
  }

  @Test func siblingConditionsApply() throws {
    let fixture = try Fixture()
    let data: ByteString = "tree/.var/app/org.example.App"
    for path: ByteString in [
      "config/App/Local State", "config/App/Cache/a", "config/App/Deep/Cache/b",
      "config/Other/Cache/c", "data/source/Preferences/x.swift", "data/source/Cache/x.swift",
    ] { try fixture.directory.write("x", at: data.appending(path)) }
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .flatpak)
    let scan = DeviceScan.run(device, policy: try Fixture.policy(.flatpak)) { $0.kind == .data }
    #expect(scan.selections["config/App/Cache/a"] == .excluded)
    #expect(scan.selections["config/App/Deep/Cache/b"] == .included)
    #expect(scan.selections["config/Other/Cache/c"] == .included)
    // The name is that of a file.
    #expect(scan.selections["data/source/Cache/x.swift"] == .included)
    let container = try #require(scan.containers.first)
    let index = try #require(container.index(of: "config/App/Cache/a"))
    let explained = scan.policy.explain(container.query(index))
    #expect(explained.verdicts == container.entries[index].verdicts)
  }

  @Test func databaseFilesAreRecognizedByTheirSiblings() throws {
    let fixture = try Fixture()
    let data: ByteString =
      "tree/Containers/Data/Application/0A0A0A0A-0000-4000-8000-000000000001/Documents"
    let magic = Array("SQLite format 3\0".utf8)
    for name: ByteString in ["a.db-shm", "a.db-wal", "report-shm", "d-shm/x", "link-shm"] {
      try fixture.directory.write("x", at: data.appending(name))
    }
    try fixture.directory.write("anything", at: data.appending("a.db"))
    try fixture.directory.write(magic + [0, 0], at: data.appending("alone-shm"))
    let documents = try Directory.open(path: fixture.directory.path(data))
    try documents.createLink("link", to: "a.db")
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .coreSimulator)
    let scan = DeviceScan.run(device, policy: try Fixture.policy(.coreSimulator))
    #expect(scan.selections["Documents/a.db-shm"] == .excluded)
    for kept: ByteString in ["a.db", "a.db-wal", "report-shm", "d-shm/x", "link-shm"] {
      #expect(scan.selections[ByteString("Documents").appending(kept)] == .included, "\(kept)")
    }
    let container = try #require(scan.containers.first)
    let alone = try #require(container.index(of: "Documents/alone-shm"))
    #expect(container.entries[alone].type == .file, "recognized by its name")
  }
}
