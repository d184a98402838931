import ArchiveStore
import Backup
import Codecs
import Glibc
import SnapshotQueries
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Files with the same bytes that are stored in different pieces: with other holes, or chunked in
/// another way.
struct ContentComparisonTests {
  private let fixture: Fixture
  private let content: [UInt8]

  /// Data, zeros, data, and so on.
  init() throws {
    fixture = try Fixture(inMemory: true)
    var random = Seeded(7)
    content = (0..<4).flatMap { _ in
      random.bytes(700 << 10) + [UInt8](repeating: 0, count: 900 << 10)
    }
  }

  /// Writes `tree/file` again and backs it up.
  ///
  /// - Parameters:
  ///   - unit: the size of the parts that become holes if they are zeros.
  ///   - number: the modification time.
  private func backUp(
    _ content: [UInt8], unit: Int?, number: Int64
  ) throws -> StoredSnapshot {
    let tree = try fixture.tree()
    if try tree.statusIfPresent("file") != nil { try tree.remove("file") }
    let file = try tree.create("file")
    for start in stride(from: 0, to: content.count, by: unit ?? content.count) {
      let part = Array(content[start..<min(start + (unit ?? content.count), content.count)])
      if unit == nil || part.contains(where: { $0 != 0 }) {
        try file.write(part, at: UInt64(start))
      }
    }
    try file.truncate(to: UInt64(content.count))
    try file.close()
    try fixture.setTime("tree/file", number)
    return try #require(try fixture.backup().snapshot)
  }

  /// Returns the differences of the file, and the numbers of its content ids in both snapshots.
  private func compare(
    _ before: StoredSnapshot, _ after: StoredSnapshot
  ) throws -> (differences: [SnapshotDifference], ids: Int) {
    let reader = try fixture.repository.beginReading()
    var found: [SnapshotDifference] = []
    try SnapshotComparison(before, after, path: "", from: reader).run { finding in
      guard case .difference(let difference) = finding else { return }
      if difference.path == "folders/tree/file" { found.append(difference) }
    }
    let ids = [before.id, after.id]
    let heads = try fixture.repository.heads().heads.filter { ids.contains($0.id) }
    let history = try PathHistory(of: { _ in "folders/tree/file" }, in: heads, from: reader)
    #expect(history.versions.count == 2)
    return (found, Set(history.versions.map(\.contentID)).count)
  }

  /// With parts of 4 KiB the file has more pieces than fit in its entry.
  @Test(arguments: [4 << 10, 100 << 10]) func holesDoNotChangeTheContent(_ unit: Int) throws {
    var content = content
    if unit == 4 << 10 {
      for start in stride(from: 0, to: content.count, by: 2 * unit) {
        content.replaceSubrange(start..<(start + unit), with: repeatElement(0, count: unit))
      }
    }
    let dense = try backUp(content, unit: nil, number: 1)
    let sparse = try backUp(content, unit: unit, number: 1)
    for (before, after) in [(dense, sparse), (sparse, dense)] {
      let (differences, ids) = try compare(before, after)
      #expect(differences.map(\.kind) == [.metadata])
      #expect(differences.map(\.aspects) == [[.holes]])
      #expect(ids == 1)
    }
    let later = try backUp(content, unit: nil, number: 2)
    let (differences, ids) = try compare(sparse, later)
    #expect(differences.map(\.aspects) == [[.modified, .holes]])
    #expect(ids == 1)
  }

  /// A byte changes in a hole, in data, or before the end.
  @Test(arguments: [750 << 10, 10, (6400 << 10) - 1])
  func aDifferentByteIsDifferentContent(_ place: Int) throws {
    let dense = try backUp(content, unit: nil, number: 1)
    var other = content
    other[place] ^= 1
    let sparse = try backUp(other, unit: 50 << 10, number: 1)
    let (differences, ids) = try compare(dense, sparse)
    #expect(differences.map(\.kind) == [.content])
    #expect(differences.map(\.aspects) == [[.content]])
    #expect(ids == 2)
  }

  /// Data that this user may not read, or that the store has moved to an archive tier, does not end
  /// a comparison of snapshots whose trees can be read.
  @Test func refusedDataCountsAsDifferent() throws {
    let before = try backUp(content, unit: nil, number: 1)
    let after = try backUp(content, unit: 100 << 10, number: 1)
    let inner = try LocalStorage(path: fixture.directory.path("repo"))
    var refused: [String] = []
    // The packs of trees are smaller.
    try inner.forEachObject(below: ObjectPath.root.appending("packs")) { path, status in
      if status.size > 1 << 20 { refused.append("\(path)") }
    }
    try #require(!refused.isEmpty)
    let storage = WatchedStorage(inner)
    storage.state.withLock { state in
      state.failure = { [refused] event in
        guard refused.contains(where: { event.hasSuffix($0) }) else { return nil }
        return StoreError(
          .system, "read", subject: event, reason: "permission denied",
          cause: SystemError(.open, "packs", number: EACCES))
      }
    }
    let reader = try Repository.open(storage).beginReading()
    var kinds: [SnapshotDifference.Kind] = []
    try SnapshotComparison(before, after, path: "", from: reader).run { finding in
      guard case .difference(let found) = finding, found.path == "folders/tree/file" else { return }
      kinds.append(found.kind)
    }
    #expect(kinds == [.content])
    #expect(
      storage.state.withLock { state in
        state.events.contains { event in refused.contains { event.hasSuffix($0) } }
      })
  }

  /// If neither file has a hole, only the pieces differ.
  @Test func differentPiecesAreNotADifference() throws {
    let data = content.map { $0 == 0 ? 3 : $0 }
    let before = try backUp(data, unit: nil, number: 1)
    try fixture.directory.write("", at: "tree/file-wal")
    let after = try backUp(data, unit: nil, number: 1)
    let reader = try fixture.repository.beginReading()
    var found: [ByteString] = []
    try SnapshotComparison(before, after, path: "", from: reader).run { finding in
      if case .difference(let difference) = finding { found.append(difference.path) }
    }
    #expect(!found.contains("folders/tree/file"))
  }
}
