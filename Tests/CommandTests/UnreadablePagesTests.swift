import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

/// A directory of several pages in a repository that has lost one of them, or their table: all
/// commands return the entries of the other pages, as recover.py does, and exit with status 13.
struct LostPagesTests {
  private typealias Entry = (name: [UInt8], entry: [UInt8])

  private static func file(_ name: String, _ text: String = "") -> Entry {
    (Array(name.utf8), ForgedEntry.file(Array(name.utf8), Array(text.utf8)))
  }

  /// Makes three pages of four entries; the third entry of each is a directory with a file.
  private static func pages(_ below: Digest) -> [[Entry]] {
    ["a", "b", "c"].map { page in
      (0..<4).map { number in
        let name = "\(page)\(number)"
        if number != 2 { return file(name) }
        return (Array(name.utf8), ForgedEntry.directory(Array(name.utf8), below))
      }
    }
  }

  private static let all = ["a", "b", "c"].flatMap { page in (0..<4).map { "\(page)\($0)" } }

  /// Returns the names that are left without a page, or none without the table.
  private static func left(without page: Int) -> [ByteString] {
    if page == 3 { return [] }
    return all.enumerated().filter { $0.offset / 4 != page }.map { ByteString($0.element) }
  }

  /// Makes a root with a file and the directory `folders` without a page; 3 is the table.
  private static func addRoot(_ forged: inout ForgedRepository, without page: Int) -> Digest {
    let below = forged.addTree([file("in").entry])
    var many = Blake2b.hash(Array("a table that is not there".utf8))
    if page != 3 { many = forged.addPages(pages(below), lost: [page]) }
    return forged.addTree([ForgedEntry.directory(Array("folders".utf8), many), file("good").entry])
  }

  private static func fixture(without page: Int) throws -> Hostile {
    try Hostile { addRoot(&$0, without: page) }
  }

  private static let ranges = ["up to 'a3'", "after 'a3' up to 'b3'", "after 'b3' up to 'c3'"]

  @Test(arguments: 0...3) func entriesOfOtherPagesAreRestored(page: Int) throws {
    let fixture = try Self.fixture(without: page)
    let ours = try fixture.ours("restore latest --to ours")
    let theirs = try fixture.theirs("repo restore latest --to theirs")
    #expect(ours.code == 13 && theirs.code == 13, "\(ours.errors) \(theirs.errors)")
    #expect(try fixture.cli.names(in: "ours/folders") == Self.left(without: page))
    let listing = try OddTree.listing(fixture.cli.directory, "ours")
    #expect(try OddTree.listing(fixture.cli.directory, "theirs") == listing)
    #expect(listing["folders/a2/in"] != nil || page == 0 || page == 3)
    let part = "some entries of the directory are lost, the names "
    let reported = "damaged: folders: " + (page < 3 ? part + Self.ranges[page] : "")
    #expect(ours.errors.contains(reported), "\(ours.errors)")
    #expect(
      ours.errors.contains("the content of 1 part of the snapshot's tree could not be restored"))
    // The directory itself can be selected as long as it has a table.
    let alone = try fixture.ours("restore latest:folders --to part")
    #expect(alone.code == 13, "\(alone.errors)")
    #expect(try fixture.cli.isThere("part") == (page < 3))
    if page < 3 { #expect(try fixture.cli.names(in: "part") == Self.left(without: page)) }
  }

  /// Any existing name may be one of the lost ones.
  @Test(arguments: 0...3) func nothingIsDeletedInADirectoryWithLostNames(page: Int) throws {
    let fixture = try Self.fixture(without: page)
    let extras = ["folders/a-extra", "folders/b-extra", "folders/z-extra", "folders/zz/deep"]
    for name in Self.all where !name.hasSuffix("2") {
      try fixture.cli.directory.write("mine", at: ByteString("into/folders/\(name)"))
    }
    for path in extras + ["extra", "folders/a2/extra", "folders/c2/extra"] {
      try fixture.cli.directory.write("mine", at: ByteString("into/\(path)"))
    }
    let line = "restore latest --to into --overwrite if-changed --delete"
    let plan = try fixture.ours(line + " --dry-run")
    #expect(plan.code == 13 && !plan.output.contains("delete   folders/z"), "\(plan.output)")
    let outcome = try fixture.ours(line)
    #expect(outcome.code == 13, "\(outcome.errors)")
    #expect(
      outcome.errors.contains("not deleted: folders: some of its names in the snapshot"))
    let names = try fixture.cli.names(in: "into/folders")
    let wanted = Set(Self.all + ["a-extra", "b-extra", "z-extra", "zz"])
    let made = Set(["a2", "b2", "c2"].filter { Self.left(without: page).contains(ByteString($0)) })
    #expect(Set(names.map(\.description)) == wanted.subtracting(["b2"]).union(made))
    #expect(try fixture.cli.names(in: "into/folders/zz") == ["deep"])
    // In directories whose names are all known, entries that are not in the snapshot are deleted.
    #expect(try !fixture.cli.isThere("into/extra"))
    let isKnown = Self.left(without: page).contains("a2")
    #expect(try fixture.cli.names(in: "into/folders/a2").contains("extra") == !isKnown)
    // Known entries are restored.
    let isRestored = Self.left(without: page).contains("c0")
    #expect(try fixture.cli.directory.read("into/folders/c0").isEmpty == isRestored)
  }

  @Test(arguments: 0...2) func otherCommandsContinue(page: Int) throws {
    let fixture = try Self.fixture(without: page)
    let left = Self.left(without: page)
    let list = try fixture.ours("ls latest --recursive --json")
    let paths = try list.output.split(separator: "\n").compactMap {
      try CommandLine.object($0).path()
    }
    let below = left.flatMap { name in
      name.bytes.last == UInt8(ascii: "2") ? [name, name.appending("in")] : [name]
    }
    let listed = below.map { ByteString("folders").appending($0) }
    #expect(list.code == 13 && paths == ["folders"] + listed + ["good"])
    let found = try fixture.ours("find ?0 --json")
    #expect(found.code == 13 && found.output.split(separator: "\n").count == 2, "\(found.output)")
    let dump = try fixture.cli.run("dump latest:folders --repo repo")
    try fixture.cli.directory.write(dump.standardOutput, at: "many.tar")
    let members = try Program.run("tar", ["-tf", "many.tar"], in: fixture.cli.directory.url).output
    #expect(dump.code == 13 && members.split(separator: "\n").count == below.count, "\(members)")
    let stats = try fixture.ours("stats latest --json")
    #expect(stats.code == 13)
    let check = try fixture.ours("check --json")
    #expect(check.code == 13)
    for reported in [list.errors, found.errors, dump.errors, stats.errors, check.output] {
      #expect(reported.contains("the names \(Self.ranges[page]): "), "\(reported)")
    }
    // The state of a path is unknown only if it would be on the lost page.
    for name in Self.all {
      let code = try fixture.ours("ls latest:folders/\(name)").code
      #expect(code == (left.contains(ByteString(name)) ? 0 : 13), "\(name)")
    }
  }

  /// An entry known in only one of two snapshots is not a difference if the other may have lost it.
  @Test(arguments: 0...3) func lostEntriesAreNoDifferences(page: Int) throws {
    var forged = ForgedRepository()
    forged.addSnapshot(Self.addRoot(&forged, without: page))
    let below = forged.addTree([Self.file("in").entry])
    var pages = Self.pages(below)
    pages[0].insert(Self.file("a01"), at: 1)
    pages[1].removeFirst()
    pages[2][3] = Self.file("c3", "other")
    forged.add(Array("other".utf8), kind: 0)
    let many = forged.addPages(pages)
    forged.addSnapshot(
      forged.addTree([ForgedEntry.directory(Array("folders".utf8), many), Self.file("good").entry]))
    let fixture = try Hostile(forged)
    for (line, added) in [("latest~1 latest", "+"), ("latest latest~1", "-")] {
      let diff = try fixture.ours("diff \(line) --json")
      let reported = try diff.output.split(separator: "\n").dropLast().compactMap {
        try CommandLine.object($0).path()
      }
      let wanted: [ByteString] = ["folders/a01", "folders/b0", "folders/c3"]
      let known = page == 3 ? [] : wanted.enumerated().filter { $0.offset != page }.map(\.element)
      #expect(diff.code == 13 && reported == known, "\(added) \(diff.output)")
    }
  }

  // MARK: - Databases

  /// Makes a database whose log would be on the lost page.
  private static func database() throws -> Hostile {
    let text = "SQLite format 3\u{0} old"
    return try Hostile { forged in
      forged.add(Array(text.utf8), kind: 0)
      let pages = [[file("db", text)], [file("db-wal", "log of old")], [file("other")]]
      let tree = forged.addPages(pages, lost: [1])
      return forged.addTree([ForgedEntry.directory(Array("folders".utf8), tree)])
    }
  }

  /// The existing database is neither combined with the restored one nor removed.
  @Test func databaseWithALostLogDoesNotReplaceAnother() throws {
    let texts: [[ByteString: String]] = [
      ["db": "SQLite format 3\u{0} newer"], ["db": "SQLite format 3\u{0} newer", "db-wal": "log"],
      ["db-wal": "log"],
    ]
    for (number, files) in texts.enumerated() {
      for what in ["latest:folders", "latest:folders/db"] {
        let fixture = try Self.database()
        for (name, text) in files {
          try fixture.cli.directory.write(text, at: ByteString("into").appending(name))
        }
        let target = what == "latest:folders" ? "into --delete" : "into/db"
        let outcome = try fixture.ours("restore \(what) --to \(target) --overwrite if-changed")
        #expect(outcome.code == 13, "\(number) \(outcome.errors)")
        #expect(outcome.errors.contains("not restored: db: 'db-"), "\(number) \(outcome.errors)")
        #expect(outcome.errors.contains("may be lost in the repository"), "\(outcome.errors)")
        let names = try fixture.cli.names(in: "into").filter { $0 != "other" }
        #expect(names == files.keys.sorted(), "\(number) \(what)")
        for (name, text) in files {
          let bytes = try fixture.cli.directory.read(ByteString("into").appending(name))
          #expect(bytes == Array(text.utf8), "\(number) \(name)")
        }
      }
    }
  }

  /// Without an existing database it is restored, because nothing better is available.
  @Test func databaseWithALostLogIsRestoredToANewPath() throws {
    let fixture = try Self.database()
    let text = Array("SQLite format 3\u{0} old".utf8)
    for (what, location) in [("latest:folders", "all/db"), ("latest:folders/db", "one")] {
      let outcome = try fixture.ours("restore \(what) --to \(location.split(separator: "/")[0])")
      #expect(outcome.code == 13 && outcome.errors.contains("damaged: "), "\(outcome.errors)")
      #expect(try fixture.cli.directory.read(ByteString(location)) == text)
    }
    let dump = try fixture.cli.run("dump latest:folders/db --repo repo")
    #expect(dump.code == 13 && dump.standardOutput == text)
    #expect(dump.errors.contains("damaged: folders/db-wal: it may exist: "), "\(dump.errors)")
    let archive = try fixture.cli.run("dump latest:folders/db --tar --repo repo")
    #expect(archive.code == 13 && archive.standardOutput.count >= 1024, "\(archive.errors)")
  }

  // MARK: - Devices

  /// Containers whose trees are lost stay unchanged; the others are restored.
  @Test func otherContainersAreRestored() throws {
    let fixture = try DeviceRestoreFixture()
    let first = try fixture.cli.packs()
    let data = try fixture.path(
      ByteString("apps/\(DeviceRestoreFixture.notebook)/data"), of: "device")
    let relative = ByteString(data.bytes.dropFirst(fixture.cli.directory.path.count + 1))
    let inner = relative.appending("Documents/new.txt")
    try fixture.cli.directory.write("new", at: inner)
    _ = try fixture.cli.succeed("backup --root device --repo repo --quiet")
    for pack in first where try DamageTests.holdsTrees(pack) {
      try fixture.cli.flip(byte: 0, of: pack)
    }
    try Directory.open(path: data.appending("Documents")).remove("new.txt")
    let outcome = try fixture.cli.run("restore latest --in-place --no-snapshot --json --repo repo")
    #expect(outcome.code == 13, "\(outcome.errors)")
    #expect(try fixture.cli.directory.read(inner) == Array("new".utf8))
    let report = try CommandLine.object(outcome.output)
    let damaged = try #require(report["damaged"] as? [[String: Any]])
    let others = damaged.compactMap { $0.path() }.filter {
      !$0.description.contains(DeviceRestoreFixture.notebook)
    }
    #expect(others.count > 5, "\(damaged)")
  }

  // MARK: - recover.py

  /// For a blob in a frame that cannot be decoded, recover.py does not say that no index names it.
  @Test func recoverReportsWhereABlobIsLost() throws {
    let cli = try CommandLine(inMemory: true)
    try cli.directory.write("one", at: "tree/one")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    for pack in try cli.packs() { try cli.flip(byte: 0, of: pack) }
    let check = try Recover.run(cli, ["repo", "verify", "--read-data"])
    #expect(check.code == 13 && check.errors.contains("of kind tree is in no intact pack"))
    #expect(!check.errors.contains("is in no index"), "\(check.errors)")
    let fixture = try Self.fixture(without: 3)
    let lost = try fixture.theirs("repo verify --read-data")
    #expect(lost.code == 13, "\(lost.errors)")
    #expect(lost.errors.contains("of kind tree is in no index"), "\(lost.errors)")
  }
}
