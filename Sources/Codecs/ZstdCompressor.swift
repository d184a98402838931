internal import CZstd

/// Makes independent zstd frames, one for each call, with content size and checksum.
///
/// A compressor keeps its memory between calls (for frames of 4 MiB 1.3 MB at level 3, 13 MB at
/// level 9, 52 MB at level 19); each thread needs its own. A frame's bytes depend on its content,
/// the level and the matcher, and on libzstd's version alone, not on earlier frames.
@safe public struct ZstdCompressor: ~Copyable {
  private let context: OpaquePointer
  /// The level of frames for which none is named.
  public let level: Int

  /// How repeats are looked for, where a level's own way is not wanted.
  public struct Matcher: Hashable, Sendable {
    /// Repeats over at most 2 MiB, found by one table of 2^16 places for runs of 7 bytes and more
    /// (zstd's strategy `fast`).
    ///
    /// Measured against level 3 on 200 MB each of small files and of an app's data, photos apart: 0.7
    /// of the time, 1.04 of the bytes (2^17 places and runs of 6: 0.84 and 1.01; 2^15 places: 0.63
    /// and 1.07).
    public static let wideFast = Matcher(windowLog: 21, hashLog: 16, minMatch: 7)

    let windowLog: Int32
    let hashLog: Int32
    let minMatch: Int32
  }

  /// Makes a compressor of a level from 1 (fast) to 22 (small); negative ones are faster still. A
  /// matcher stays at whatever level.
  public init(level: Int = 3, matcher: Matcher? = nil) throws(CodecError) {
    unsafe context = try Self.context(level, matcher)
    self.level = level
  }

  private static func context(_ level: Int, _ matcher: Matcher?) throws(CodecError) -> OpaquePointer
  {
    guard let context = unsafe ZSTD_createCCtx() else {
      throw CodecError(.library, .zstd, "no memory for the compressor")
    }
    do throws(CodecError) {
      try check(unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1))
      try check(unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 1))
      try unsafe setLevel(level, of: context)
      if let matcher { try unsafe set(matcher, of: context) }
    } catch {
      unsafe ZSTD_freeCCtx(context)
      throw error
    }
    return unsafe context
  }

  deinit { unsafe ZSTD_freeCCtx(context) }

  /// Appends one frame of `content` to a buffer, at another level if one is given, and returns the
  /// frame's size. The buffer is as before when this fails.
  @discardableResult
  public mutating func compress(
    _ content: Span<UInt8>, level: Int? = nil, appendingTo buffer: inout [UInt8]
  ) throws(CodecError) -> Int {
    let before = buffer.count
    let context = unsafe context
    try unsafe Self.setLevel(level ?? self.level, of: context)
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

  /// One frame of `content`, at another level if one is given.
  public mutating func compress(
    _ content: [UInt8], level: Int? = nil
  ) throws(CodecError) -> [UInt8] {
    var frame: [UInt8] = []
    try compress(content.span, level: level, appendingTo: &frame)
    return frame
  }

  private static func set(_ matcher: Matcher, of context: OpaquePointer) throws(CodecError) {
    let parameters = [
      (ZSTD_c_strategy, Int32(ZSTD_fast.rawValue)), (ZSTD_c_windowLog, matcher.windowLog),
      (ZSTD_c_hashLog, matcher.hashLog), (ZSTD_c_minMatch, matcher.minMatch),
    ]
    for (parameter, value) in parameters {
      try check(unsafe ZSTD_CCtx_setParameter(context, parameter, value))
    }
  }

  private static func setLevel(_ level: Int, of context: OpaquePointer) throws(CodecError) {
    guard Int(ZSTD_minCLevel())...Int(ZSTD_maxCLevel()) ~= level else {
      throw CodecError(.unrepresentable, .zstd, "there is no level \(level)")
    }
    try check(
      unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, Int32(level)))
  }

  @discardableResult
  private static func check(_ result: Int) throws(CodecError) -> Int {
    guard ZSTD_isError(result) == 0 else {
      throw CodecError(.library, .zstd, unsafe String(cString: ZSTD_getErrorName(result)))
    }
    return result
  }
}
