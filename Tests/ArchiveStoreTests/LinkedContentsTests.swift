import ArchiveStore
import Codecs
import SystemIO
import Testing

/// Whether the names of hard-linked files count in totals.
struct LinkedContentsTests {
  /// Returns whether each of several names counts, one after another.
  private func counts(_ names: [(size: UInt64, group: ByteString?)]) -> [Bool] {
    var linked = LinkedContents()
    return names.map { name in
      let content = Content(size: name.size, level: 0, pieces: [.hole(length: name.size)])
      return linked.isFirstName(of: content, in: name.group)
    }
  }

  @Test func aFileCountsAtItsFirstName() {
    #expect(
      counts([(5, "folders/x/a"), (5, "folders/x/a"), (5, "folders/x/b")]) == [true, false, true])
  }

  /// A name with different content is restored as a separate file.
  @Test func aNameWithOtherContentCounts() {
    #expect(
      counts([(5, "folders/x/a"), (6, "folders/x/a"), (5, "folders/x/a")]) == [true, true, false])
  }

  @Test func filesWithOneNameAlwaysCount() {
    #expect(counts([(5, nil), (5, nil)]) == [true, true])
  }
}
