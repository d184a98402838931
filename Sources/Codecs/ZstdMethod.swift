/// A method of compression. All frames can be decoded by any zstd.
package struct ZstdMethod: Hashable, Sendable {
  /// The level from 1 (fast) to 22 (small); negative ones are faster.
  package var level: Int
  /// The match finder, or nil for the default of the level.
  package var matcher: Matcher?
  /// Whether literals are stored uncompressed, for the strategy `fast` (levels up to 2, and each
  /// matcher): for noise this saves a third of the time (measured with `wideFast`).
  package var storesLiterals: Bool

  /// Creates a method. Level 3 is the default of zstd.
  package init(level: Int = 3, matcher: Matcher? = nil, storesLiterals: Bool = false) {
    self.level = level
    self.matcher = matcher
    self.storesLiterals = storesLiterals
  }

  /// A match finder with one hash table (zstd's strategy `fast`).
  package struct Matcher: Hashable, Sendable {
    let windowLog: Int32
    let hashLog: Int32
    let minMatch: Int32

    /// Matches of at least 7 bytes within 2 MiB, with 2^16 table entries.
    ///
    /// Measured against level 3 on 200 MB each of small files and of app data without photos: 0.7
    /// of the time, 1.04 of the size (2^17 entries and matches of 6: 0.84 and 1.01; 2^15 entries:
    /// 0.63 and 1.07).
    package static let wideFast = Matcher(windowLog: 21, hashLog: 16, minMatch: 7)
    /// Matches of at least 6 bytes, with 2^17 table entries: the additional matches are worth the
    /// time if nothing else compresses the content.
    package static let wideFull = Matcher(windowLog: 21, hashLog: 17, minMatch: 6)
  }
}
