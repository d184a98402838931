/// A directory name that suggests a cache.
///
/// A name is not evidence (docs/policies.md, "Names that look like caches"): it changes no verdict.
/// Reports of kept data use it, so that users can write a rule if they know better.
///
/// The words are matched in any case of ASCII letters, and at the end of a word: `gurd_cache`,
/// `Image Cache`, `webcache`, `DiskCacheV2` and `fsCachedData`, but not `Cacheable`. `CacheStorage`
/// is the storage of web apps, which its makers do not call a cache, and `geocache` is a word for
/// user data.
public enum CacheName: String, CaseIterable, Sendable, Hashable {
  /// `cache`, `caches` or `cached`.
  case cache
  /// `thumbnail` or `thumbnails`.
  case thumbnails
  /// The directory of a library that is also found in caches: `CCTClearcutLogger` and
  /// `PHTPhenotype` of Google's libraries, observed on devices.
  case library

  /// Returns the kind of a directory's name, or nil if the name does not suggest a cache.
  public init?(_ name: Span<UInt8>) {
    // Most names are shorter than the words, or contain none of the first letters.
    guard name.count >= 5 else { return nil }
    if Self.exceptions.contains(where: { name.isEqual(to: $0.span) }) { return nil }
    for start in 0...(name.count - 5) {
      switch name[start] | Self.lowerCase {
      case UInt8(ascii: "c"):
        if Self.cacheWord.ends(in: name, at: start, after: Self.geographic) {
          self = .cache
          return
        }
      case UInt8(ascii: "t"):
        if Self.thumbnailWord.ends(in: name, at: start) {
          self = .thumbnails
          return
        }
      default: continue
      }
    }
    guard Self.libraries.contains(where: { name.isEqual(to: $0.span) }) else { return nil }
    self = .library
  }

  private static let lowerCase: UInt8 = 0x20
  private static let cacheWord = Word("cache", suffixes: "sd")
  private static let thumbnailWord = Word("thumbnail", suffixes: "s")
  private static let geographic = Array("geo".utf8)
  private static let exceptions = [Array("CacheStorage".utf8)]
  private static let libraries = [Array("CCTClearcutLogger".utf8), Array("PHTPhenotype".utf8)]
}

extension CacheName {
  /// A word that names a kind of data.
  private struct Word {
    private let letters: [UInt8]
    /// Letters of which one may follow.
    private let suffixes: [UInt8]

    init(_ letters: String, suffixes: String) {
      (self.letters, self.suffixes) = (Array(letters.utf8), Array(suffixes.utf8))
    }

    /// Whether the word is at a position of a name and a word of the name ends with it.
    ///
    /// - Parameter exception: letters after which it is another word.
    func ends(in name: Span<UInt8>, at start: Int, after exception: [UInt8] = []) -> Bool {
      guard has(letters, in: name, at: start) else { return false }
      let end = start + letters.count
      let hasSuffix = end < name.count && suffixes.contains(lower(name[end]))
      // In CacheStore, the S begins another word.
      guard isBoundary(name, at: end) || hasSuffix && isBoundary(name, at: end + 1) else {
        return false
      }
      return exception.isEmpty || !has(exception, in: name, at: start - exception.count)
    }

    private func has(_ wanted: [UInt8], in name: Span<UInt8>, at start: Int) -> Bool {
      guard start >= 0, start + wanted.count <= name.count else { return false }
      return wanted.indices.allSatisfy { lower(name[start + $0]) == wanted[$0] }
    }

    /// Whether a word ends before a position: no letter follows, or a capital letter does after a
    /// small one.
    private func isBoundary(_ name: Span<UInt8>, at index: Int) -> Bool {
      guard index < name.count, isLetter(name[index]) else { return true }
      return isCapital(name[index]) && !isCapital(name[index - 1])
    }

    private func lower(_ byte: UInt8) -> UInt8 { isCapital(byte) ? byte | lowerCase : byte }

    private func isCapital(_ byte: UInt8) -> Bool {
      (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
    }

    /// Whether a byte is an ASCII letter, or part of a letter outside of ASCII.
    private func isLetter(_ byte: UInt8) -> Bool {
      isCapital(byte) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || byte >= 0x80
    }
  }
}

extension DataClass {
  /// Whether data of the class is kept for its own sake: it is neither recreated nor provided by an
  /// app or the platform, as far as the policy knows.
  public var isKept: Bool {
    switch self {
    case .userData, .inbox, .support, .preferences, .unknown: true
    case .downloaded, .cache, .temporary, .bundle, .metadata: false
    }
  }
}
