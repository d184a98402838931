internal import CZstd

/// Compresses independent zstd frames, one for each call, with content size and checksum.
///
/// A compressor keeps its memory between calls (for frames of 4 MiB 1.3 MB at level 3, 13 MB at
/// level 9, 52 MB at level 19). Each thread needs its own. The bytes of a frame depend only on its
/// content, the method and the version of libzstd, not on earlier frames.
@safe public struct ZstdCompressor: ~Copyable {
  private let context: OpaquePointer
  /// The default method for frames.
  public let method: ZstdMethod

  /// Creates a compressor.
  ///
  /// - Throws: `unrepresentable` for an invalid level.
  public init(_ method: ZstdMethod = ZstdMethod()) throws(CodecError) {
    unsafe context = try Self.context(method)
    self.method = method
  }

  private static func context(_ method: ZstdMethod) throws(CodecError) -> OpaquePointer {
    guard let context = unsafe ZSTD_createCCtx() else {
      throw CodecError(.library, in: .zstd, reason: "not enough memory for the compressor")
    }
    do throws(CodecError) {
      try check(unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1))
      try check(unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 1))
      try unsafe set(method, of: context)
    } catch {
      unsafe ZSTD_freeCCtx(context)
      throw error
    }
    return unsafe context
  }

  deinit { unsafe ZSTD_freeCCtx(context) }

  /// Appends one frame of `content` to a buffer, with another method if one is given, and returns
  /// the size of the frame. The buffer is unchanged on failure.
  @discardableResult
  public mutating func compress(
    _ content: Span<UInt8>, by method: ZstdMethod? = nil, appendingTo buffer: inout [UInt8]
  ) throws(CodecError) -> Int {
    let before = buffer.count
    let context = unsafe context
    try unsafe Self.set(method ?? self.method, of: context)
    try unsafe content.withUnsafeBytes { (source: UnsafeRawBufferPointer) throws(CodecError) in
      try buffer.append(addingCapacity: ZSTD_compressBound(source.count)) {
        (output: inout OutputSpan<UInt8>) throws(CodecError) in
        try unsafe output.withUnsafeMutableBufferPointer {
          (target: UnsafeMutableBufferPointer<UInt8>, count: inout Int) throws(CodecError) in
          count = try Self.check(
            unsafe ZSTD_compress2(
              context, target.baseAddress, target.count, source.baseAddress, source.count))
        }
      }
    }
    return buffer.count - before
  }

  /// Sets all parameters of a method. 0 selects zstd's default for the level.
  private static func set(
    _ method: ZstdMethod, of context: OpaquePointer
  ) throws(CodecError) {
    guard Int(ZSTD_minCLevel())...Int(ZSTD_maxCLevel()) ~= method.level else {
      throw CodecError(.unrepresentable, in: .zstd, reason: "invalid level \(method.level)")
    }
    let matcher = method.matcher
    let parameters = [
      (ZSTD_c_compressionLevel, Int32(method.level)),
      (ZSTD_c_strategy, matcher == nil ? 0 : Int32(ZSTD_fast.rawValue)),
      (ZSTD_c_windowLog, matcher?.windowLog ?? 0), (ZSTD_c_hashLog, matcher?.hashLog ?? 0),
      (ZSTD_c_minMatch, matcher?.minMatch ?? 0),
      (ZSTD_c_targetLength, method.storesLiterals ? 1 : 0),
    ]
    for (parameter, value) in parameters {
      try check(unsafe ZSTD_CCtx_setParameter(context, parameter, value))
    }
  }

  @discardableResult
  private static func check(_ result: Int) throws(CodecError) -> Int {
    guard ZSTD_isError(result) == 0 else {
      throw CodecError(
        .library, in: .zstd, reason: unsafe String(cString: ZSTD_getErrorName(result)))
    }
    return result
  }
}

/// A method of compression. All frames can be decoded by any zstd.
public struct ZstdMethod: Hashable, Sendable {
  /// The level from 1 (fast) to 22 (small); negative ones are faster.
  public var level: Int
  /// The match finder, or nil for the default of the level.
  public var matcher: Matcher?
  /// Whether literals are stored uncompressed, for the strategy `fast` (levels up to 2, and each
  /// matcher): for noise this saves a third of the time (measured with `wideFast`).
  public var storesLiterals: Bool

  /// Creates a method. Level 3 is the default of zstd.
  public init(level: Int = 3, matcher: Matcher? = nil, storesLiterals: Bool = false) {
    self.level = level
    self.matcher = matcher
    self.storesLiterals = storesLiterals
  }

  /// A match finder with one hash table (zstd's strategy `fast`).
  public struct Matcher: Hashable, Sendable {
    let windowLog: Int32
    let hashLog: Int32
    let minMatch: Int32

    /// Matches of at least 7 bytes within 2 MiB, with 2^16 table entries.
    ///
    /// Measured against level 3 on 200 MB each of small files and of app data without photos: 0.7
    /// of the time, 1.04 of the size (2^17 entries and matches of 6: 0.84 and 1.01; 2^15 entries:
    /// 0.63 and 1.07).
    public static let wideFast = Matcher(windowLog: 21, hashLog: 16, minMatch: 7)
    /// Matches of at least 6 bytes, with 2^17 table entries: the additional matches are worth the
    /// time if nothing else compresses the content.
    public static let wideFull = Matcher(windowLog: 21, hashLog: 17, minMatch: 6)
  }
}
