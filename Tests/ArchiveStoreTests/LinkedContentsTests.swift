import ArchiveStore
import Codecs
import SystemIO
import Testing

/// The names of hard-linked files in totals.
@Suite struct LinkedContentsTests {
  private func content(_ size: UInt64) -> Content {
    Content(size: size, level: 0, pieces: [.hole(length: size)])
  }

  @Test func aFileCountsAtItsFirstName() {
    var linked = LinkedContents()
    #expect(linked.isFirstName(of: content(5), in: "folders/x/a"))
    #expect(!linked.isFirstName(of: content(5), in: "folders/x/a"))
    #expect(linked.isFirstName(of: content(5), in: "folders/x/b"))
  }

  /// It is restored as a separate file.
  @Test func aNameWithOtherContentCounts() {
    var linked = LinkedContents()
    #expect(linked.isFirstName(of: content(5), in: "folders/x/a"))
    #expect(linked.isFirstName(of: content(6), in: "folders/x/a"))
    #expect(!linked.isFirstName(of: content(5), in: "folders/x/a"))
  }

  @Test func filesWithOneNameAlwaysCount() {
    var linked = LinkedContents()
    #expect(linked.isFirstName(of: content(5), in: nil))
    #expect(linked.isFirstName(of: content(5), in: nil))
  }
}
