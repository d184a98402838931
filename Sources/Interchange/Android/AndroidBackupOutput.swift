internal import Codecs
internal import SystemIO

/// The data of an Android backup on its way to a file: compressed, encrypted, written in portions.
struct AndroidBackupOutput: ~Copyable {
  private let write: AndroidBackupWriter.Write
  private let subject: ByteString
  private let deflating: Deflating?
  private let encrypting: Encrypting?
  /// The bytes of the archive that were not processed yet.
  private var plain: [UInt8] = []
  /// The bytes of the file that were not written yet.
  private var stored: [UInt8]

  static let portion = 128 << 10

  init(
    _ header: AndroidBackupHeader, cipher: consuming BlockCipher?, subject: ByteString,
    write: @escaping AndroidBackupWriter.Write
  ) throws(InterchangeError) {
    self.write = write
    self.subject = subject
    encrypting = if let cipher { Encrypting(cipher) } else { nil }
    do throws(CodecError) {
      deflating = header.isCompressed ? Deflating(try Deflater()) : nil
    } catch {
      throw InterchangeError(error, AndroidBackupWriter.action, subject: subject)
    }
    stored = header.encoded()
  }

  /// Adds bytes of the archive.
  mutating func append(_ bytes: some Sequence<UInt8>) throws(InterchangeError) {
    plain += bytes
    if plain.count >= Self.portion { try flush(isLast: false) }
  }

  /// Writes all bytes and the end of each stage.
  mutating func finish() throws(InterchangeError) { try flush(isLast: true) }

  private mutating func flush(isLast: Bool) throws(InterchangeError) {
    var bytes = plain
    plain.removeAll(keepingCapacity: true)
    do throws(CodecError) {
      if let deflating { bytes = try deflating.process(bytes, isLast: isLast) }
    } catch {
      throw InterchangeError(error, AndroidBackupWriter.action, subject: subject)
    }
    stored += encrypting?.process(bytes, isLast: isLast) ?? bytes
    guard isLast || stored.count >= Self.portion else { return }
    try write(stored.span)
    stored.removeAll(keepingCapacity: true)
  }

  /// The stage that compresses.
  private final class Deflating {
    private var deflater: Deflater

    init(_ deflater: consuming Deflater) { self.deflater = deflater }

    func process(_ bytes: [UInt8], isLast: Bool) throws(CodecError) -> [UInt8] {
      var packed: [UInt8] = []
      try deflater.deflate(bytes.span, appendingTo: &packed)
      if isLast { try deflater.finish(appendingTo: &packed) }
      return packed
    }
  }

  /// The stage that encrypts whole blocks and keeps the rest; at the end, the padding makes it
  /// whole.
  private final class Encrypting {
    private var cipher: BlockCipher
    private var rest: [UInt8] = []

    init(_ cipher: consuming BlockCipher) { self.cipher = cipher }

    func process(_ bytes: [UInt8], isLast: Bool) -> [UInt8] {
      var input = rest + bytes
      if isLast { input += BlockPadding.bytes(after: UInt64(input.count)) }
      let whole = input.count - input.count % BlockCipher.blockSize
      var encrypted: [UInt8] = []
      cipher.process(input.span.extracting(0..<whole), appendingTo: &encrypted)
      rest = Array(input[whole...])
      return encrypted
    }
  }
}
