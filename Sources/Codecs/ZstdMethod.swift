/// How a zstd frame is made. Each makes frames that any zstd decodes.
public struct ZstdMethod: Hashable, Sendable {
  /// From 1 (fast) to 22 (small); negative ones are faster still.
  public var level: Int
  /// How repeats are looked for, where that is not to be the level's own way.
  public var matcher: Matcher?
  /// Whether what repeats nothing is stored as it is, by the strategy `fast` (levels up to 2, and
  /// each matcher): where it is noise that saves a third of the time (measured with `wideFast`).
  public var storesLiterals: Bool

  /// Describes a method; level 3 is zstd's own choice.
  public init(level: Int = 3, matcher: Matcher? = nil, storesLiterals: Bool = false) {
    self.level = level
    self.matcher = matcher
    self.storesLiterals = storesLiterals
  }

  /// A way to look for repeats by one table of places (zstd's strategy `fast`).
  public struct Matcher: Hashable, Sendable {
    let windowLog: Int32
    let hashLog: Int32
    let minMatch: Int32

    /// Repeats over at most 2 MiB, of 7 bytes and more, by 2^16 places.
    ///
    /// Measured against level 3 on 200 MB each of small files and of an app's data, photos apart: 0.7
    /// of the time, 1.04 of the bytes (2^17 places and runs of 6: 0.84 and 1.01; 2^15 places: 0.63
    /// and 1.07).
    public static let wideFast = Matcher(windowLog: 21, hashLog: 16, minMatch: 7)
    /// Of 6 bytes and more, by 2^17 places: what is found besides is worth its time where nothing else
    /// makes the content smaller.
    public static let wideFull = Matcher(windowLog: 21, hashLog: 17, minMatch: 6)
  }
}
