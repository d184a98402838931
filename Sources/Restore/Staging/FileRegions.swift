internal import Synchronization

/// The regions of large files whose content arrives in any order, with the bytes that each lacks.
///
/// The pages of a database that changed every day are in many packs. If they were flushed as they
/// arrive, the file system would have to allocate space for single pages, which takes longer than
/// writing them and delays the threads that write. A region is flushed when it is complete. Safe to
/// use from any thread.
final class FileRegions: Sendable {
  /// The size of a region in bytes.
  static let size: UInt64 = 4 << 20
  /// The size in bytes of a file from which its regions are counted.
  static let minimumFile = 2 * size

  /// The state of the regions that a write belongs to.
  enum Progress: Hashable {
    /// They are not counted.
    case unknown
    case incomplete
    /// It completes regions. The range is theirs, together with that of the write.
    case complete(Range<UInt64>)
  }

  private struct Region: Hashable {
    /// The number of the file.
    let file: Int
    let number: UInt64
  }

  /// The bytes that each region lacks.
  private let missing = Mutex<[Region: Int]>([:])

  /// Expects content of a file.
  func expect(_ range: Range<UInt64>, of file: Int) {
    missing.withLock { missing in
      Self.forEachRegion(range, of: file) { missing[$0, default: 0] += $1 }
    }
  }

  /// Records written content.
  func didWrite(_ range: Range<UInt64>, of file: Int) -> Progress {
    missing.withLock { missing in
      var progress = Progress.unknown
      Self.forEachRegion(range, of: file) { region, count in
        guard let left = missing[region] else { return }
        if left > count {
          missing[region] = left - count
          if progress == .unknown { progress = .incomplete }
        } else {
          missing[region] = nil
          progress = .complete(Self.range(of: region, and: progress, range))
        }
      }
      return progress
    }
  }

  private static func range(
    of region: Region, and before: Progress, _ written: Range<UInt64>
  ) -> Range<UInt64> {
    let (start, end) = (region.number * size, (region.number + 1) * size)
    var range = written
    if case .complete(let others) = before { range = others }
    return min(range.lowerBound, start)..<max(range.upperBound, end)
  }

  /// Passes each region of a range, with the number of its bytes in the range.
  private static func forEachRegion(
    _ range: Range<UInt64>, of file: Int, _ body: (Region, Int) -> Void
  ) {
    var start = range.lowerBound
    while start < range.upperBound {
      let number = start / size
      let end = min(range.upperBound, (number + 1) * size)
      body(Region(file: file, number: number), Int(end - start))
      start = end
    }
  }
}
