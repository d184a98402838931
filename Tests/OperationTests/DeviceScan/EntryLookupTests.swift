import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceScan
@testable import Restore

/// Lookups by path among the entries of a scan.
@Suite(.spreadScans) struct EntryLookupTests {
  @Test func findsExactlyTheScannedEntries() throws {
    let fixture = try Fixture(inMemory: true)
    for path in ["a/b/c", "a/b/d", "a/x", "y", "\u{fc}/e"] {
      _ = try fixture.directory.write([1], at: ByteString("tree").appending(ByteString(path)))
    }
    let scan = try #require(try fixture.scan().containers.first)
    let lookup = EntryLookup(scan)
    for index in scan.entries.indices { #expect(lookup.index(of: scan.path(index)) == index) }
    for path in ["b", "a/b/e", "a/b/c/d", "z/z", "a/bb"] as [ByteString] {
      #expect(lookup.index(of: path) == nil)
      #expect(scan.index(of: path) == nil)
    }
  }

  @Test func findsTheEntriesOfEachContainerByTheirLogicalPaths() throws {
    let fixture = try PurgeFixture()
    for app in 0..<2 { try fixture.put(ByteString("Documents/\(app)/file"), in: app) }
    let scans = try fixture.scan().containers
    let lookup = LogicalPathLookup(scans)
    for scan in scans {
      for index in scan.entries.indices {
        let found = try #require(lookup.entry(at: scan.logicalPath(index)))
        #expect(found.index == index && found.scan.container == scan.container)
      }
      #expect(lookup.entry(at: scan.container.logicalPrefix.appending("Documents/none")) == nil)
    }
    #expect(scans.count == 2 && lookup.entry(at: "apps") == nil)
  }

  /// Looking up all entries of a wide directory takes n log n steps: less than a second. With n
  /// steps for each entry, 2 * 10^10 comparisons would take minutes.
  @Test(.timeLimit(.minutes(1))) func looksUpEveryEntryOfAWideDirectoryInTime() throws {
    let count = 200_000
    let scan = try ContainerScan.wide(count) { "file \($0 &* 7919 % count)" }
    let lookup = EntryLookup(scan)
    let wrong = (1...count).first { lookup.index(of: scan.name($0)) != $0 }
    #expect(wrong == nil)
  }
}

/// Sets of paths, which find out whether a path is one of them, or above or below one.
@Suite(.spreadScans) struct PathSetTests {
  @Test func answersLikeAComparisonWithEachPath() {
    var random = Seeded(5)
    let names = ["a", "b", "a b", "a-b", "ab"]
    func path() -> ByteString {
      let parts = (0..<Int.random(in: 0...4, using: &random)).compactMap { _ in
        names.randomElement(using: &random)
      }
      return ByteString(parts.joined(separator: "/"))
    }
    for _ in 0..<200 {
      let members = (0..<6).map { _ in path() }
      let set = SparedPaths.PathSet(members)
      for asked in (0..<20).map({ _ in path() }) {
        let covered = members.contains { asked.isWithin($0) }
        #expect(set.covers(asked) == covered, "\(asked) in \(members)")
        let isAbout = covered || members.contains { $0.isWithin(asked) }
        #expect(set.isAbout(asked) == isAbout, "\(asked) in \(members)")
      }
    }
  }

  @Test func parentsOfPathsAreTheirDirectories() {
    let pairs: [(ByteString, ByteString)] = [
      ("a/b/c", "a/b"), ("a", ""), ("", ""), ("/a/b", "/a"), ("/a", "/"), ("/", "/"),
      ("a//b/", "a"),
    ]
    for (path, parent) in pairs { #expect(path.parent == parent, "\(path)") }
  }
}
