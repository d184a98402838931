import Testing

@testable import Restore

/// The regions of large files are flushed once they are complete, in any order of writes.
struct FileRegionsTests {
  private static let size = FileRegions.size
  private static let page: UInt64 = 16 << 10

  /// Registers the pages of a file of two and a half regions as expected.
  private func expected() -> (FileRegions, [Range<UInt64>]) {
    let regions = FileRegions()
    let starts = stride(from: 0, to: Self.size * 5 / 2, by: Int(Self.page))
    let pages = starts.map { $0..<($0 + Self.page) }
    for page in pages { regions.expect(page, of: 3) }
    return (regions, pages)
  }

  @Test func aRegionIsCompleteWithItsLastPage() {
    let (regions, pages) = expected()
    var complete: [Range<UInt64>] = []
    for (number, page) in pages.shuffled().enumerated() {
      switch regions.didWrite(page, of: 3) {
      case .complete(let range): complete.append(range)
      case .incomplete: #expect(number + 1 < pages.count)
      case .unknown: Issue.record("page \(page) is not counted")
      }
    }
    let ends = complete.map(\.upperBound).sorted()
    #expect(ends == [Self.size, 2 * Self.size, 3 * Self.size])
  }

  /// A piece cut by a content-defined chunker does not end at the end of a region.
  @Test func aPieceBelongsToTwoRegions() {
    let regions = FileRegions()
    let (first, second) = (0..<(Self.size + 5), (Self.size + 5)..<(2 * Self.size))
    regions.expect(first, of: 1)
    regions.expect(second, of: 1)
    #expect(regions.didWrite(second, of: 1) == .incomplete)
    #expect(regions.didWrite(first, of: 1) == .complete(0..<(2 * Self.size)))
  }

  /// No write of a hole is expected, so a hole never completes a region.
  @Test func aRegionWithAHoleIsCompleteWithoutIt() {
    let regions = FileRegions()
    regions.expect(0..<Self.page, of: 1)
    regions.expect((2 * Self.page)..<(3 * Self.page), of: 1)
    #expect(regions.didWrite(0..<Self.page, of: 1) == .incomplete)
    #expect(regions.didWrite((2 * Self.page)..<(3 * Self.page), of: 1) == .complete(0..<Self.size))
  }

  @Test func otherFilesAndSecondWritesAreUnknown() {
    let regions = FileRegions()
    regions.expect(0..<Self.page, of: 1)
    #expect(regions.didWrite(0..<Self.page, of: 2) == .unknown)
    #expect(regions.didWrite(0..<Self.page, of: 1) == .complete(0..<Self.size))
    #expect(regions.didWrite(0..<Self.page, of: 1) == .unknown)
  }
}
