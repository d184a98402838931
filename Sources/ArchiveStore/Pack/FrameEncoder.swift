internal import Codecs
internal import SystemIO

/// Compresses frames. Each frame is decoded and compared before it is returned.
///
/// Uses about 10 MB after a frame of 4 MiB. Each thread needs its own encoder.
struct FrameEncoder: ~Copyable {
  /// The default method. Higher levels cost more time than they save bytes on app data.
  static let usual = ZstdMethod(level: 2, matcher: .wideFast)
  /// The method for large frames of one file that, according to a sample, compress only by repeats,
  /// such as databases whose values are photos, keys or numbers. It stores database rows in 97
  /// percent of the bytes, and is faster.
  static let repeats = ZstdMethod(level: 2, matcher: .wideFull, storesLiterals: true)
  /// The method for content that, according to a sample, does not compress.
  static let cheapest = ZstdMethod(level: -1, matcher: .wideFast)
  /// The minimum size of a frame that is sampled for repeats; on a smaller one the sample costs too
  /// much.
  static let largeFrame = 1 << 20

  private var compressor: ZstdCompressor
  private var decompressor: ZstdDecompressor
  private var probe: CompressionProbe
  private var check: [UInt8] = []
  /// The bytes of the last frame; kept to reuse their memory.
  private var stored: [UInt8] = []

  init() throws(StoreError) {
    let compressor = try StoreError.wrap(coding: "a frame") { () throws(CodecError) in
      try ZstdCompressor(Self.usual)
    }
    let decompressor = try StoreError.wrap(coding: "a frame") { () throws(CodecError) in
      try ZstdDecompressor()
    }
    let probe = try StoreError.wrap(coding: "a frame") { () throws(CodecError) in
      try CompressionProbe()
    }
    self.compressor = compressor
    self.decompressor = decompressor
    self.probe = probe
  }

  /// Compresses a frame.
  mutating func encode(_ frame: PackFrame.Plain) throws(StoreError) -> PackFrame {
    PackFrame(
      stored: try encode(frame.bytes, isOneFile: frame.isOneFile), plain: frame.bytes.count,
      blobs: frame.blobs)
  }

  /// Returns the stored bytes of a frame. The caller must release them before the next frame, which
  /// reuses their memory.
  private mutating func encode(_ plain: [UInt8], isOneFile: Bool) throws(StoreError) -> [UInt8] {
    let method = method(of: plain.span, isOneFile: isOneFile)
    var stored: [UInt8] = []
    swap(&stored, &self.stored)
    stored.removeAll(keepingCapacity: true)
    do {
      try compressor.compress(plain.span, by: method, appendingTo: &stored)
      check.removeAll(keepingCapacity: true)
      try decompressor.decompress(stored.span, limit: plain.count, appendingTo: &check)
    } catch { throw .codec(error, "a frame") }
    guard check.span.hasSameBytes(as: plain.span) else {
      throw StoreError(
        .system, "store", subject: "a frame",
        reason: "the compressed bytes decode to different content",
        hint: "check the machine's memory")
    }
    self.stored = stored
    return stored
  }

  private mutating func method(of plain: Span<UInt8>, isOneFile: Bool) -> ZstdMethod {
    let looksForRepeats = isOneFile && plain.count >= Self.largeFrame
    return switch probe.bestMethod(plain, looksForRepeats: looksForRepeats) {
    case .all: Self.usual
    case .repeats: Self.repeats
    case .nothing: Self.cheapest
    }
  }
}
