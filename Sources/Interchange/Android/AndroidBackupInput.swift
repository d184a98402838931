internal import Codecs
internal import SystemIO

/// A stage of reading an Android backup: the stored bytes, the decrypted ones, the inflated ones.
protocol AndroidBackupInput: AnyObject {
  /// Reads the next bytes and returns their number, 0 at the end. Fewer than the buffer's size do
  /// not mean the end.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(InterchangeError) -> Int
  /// Whether the end of the bytes is marked in them, so that a truncation is detected.
  var marksEnd: Bool { get }
}

extension AndroidBackupInput {
  /// Reads until the buffer is full or the bytes end, and returns their number.
  func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(InterchangeError) -> Int {
    var filled = 0
    while filled < buffer.count {
      let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
      if count == 0 { break }
      filled += count
    }
    return filled
  }
}

/// The bytes of a file after a header.
final class StoredInput: AndroidBackupInput {
  private let file: Descriptor
  private let subject: ByteString
  private let isStopping: () -> Bool
  /// The status at the start; nil if it is not known.
  private let status: FileStatus?
  private var buffer: [UInt8]
  private var position: Int
  private var end: Int

  static let portion = 128 << 10
  let marksEnd = false

  /// Takes a file that was read up to the end of `start`, of which `count` bytes are the header.
  init(
    _ file: consuming Descriptor, after count: Int, of start: [UInt8], subject: ByteString,
    isStopping: @escaping () -> Bool
  ) {
    status = try? file.status()
    self.file = file
    self.subject = subject
    self.isStopping = isStopping
    buffer = start + [UInt8](repeating: 0, count: max(0, Self.portion - start.count))
    position = count
    end = start.count
  }

  /// Whether the file, which is not a stream, changed since the start.
  var hasChanged: Bool {
    guard let status, status.kind == .file, let now = try? file.status() else { return false }
    return now.size != status.size || now.modified != status.modified
  }

  func read(into target: UnsafeMutableRawBufferPointer) throws(InterchangeError) -> Int {
    if position == end {
      end = try Self.read(file, into: &buffer, from: 0, isStopping)
      position = 0
    }
    let count = min(target.count, end - position)
    target.copyBytes(from: buffer[position..<(position + count)])
    position += count
    return count
  }
}

extension StoredInput {
  /// Reads the start of a file, at most `limit` bytes.
  static func start(
    of file: borrowing Descriptor, limit: Int, _ isStopping: () -> Bool
  ) throws(InterchangeError) -> [UInt8] {
    var start = [UInt8](repeating: 0, count: limit)
    var filled = 0
    while filled < limit {
      let count = try read(file, into: &start, from: filled, isStopping)
      if count == 0 { break }
      filled += count
    }
    start.removeLast(limit - filled)
    return start
  }

  /// Reads the next bytes of a file into a buffer and returns their number, 0 at the end.
  private static func read(
    _ file: borrowing Descriptor, into buffer: inout [UInt8], from start: Int,
    _ isStopping: () -> Bool
  ) throws(InterchangeError) -> Int {
    let found: Int?
    do throws(SystemError) {
      found = try file.readAvailable(into: &buffer, from: start, isStopping: isStopping)
    } catch {
      throw InterchangeError(error, AndroidBackupHeader.action, subject: file.name)
    }
    guard let count = found else {
      throw InterchangeError(
        .interrupted, AndroidBackupHeader.action, subject: file.name,
        reason: "it was interrupted", hint: "run it again")
    }
    return count
  }
}

/// The plain bytes of an AES-256-CBC stream, without the padding of its last block.
final class DecryptedInput: AndroidBackupInput {
  private let input: any AndroidBackupInput
  private let subject: ByteString
  private var cipher: BlockCipher
  /// Plain bytes; the last block is kept until more follows, since it may have the padding.
  private var plain: [UInt8] = []
  private var position = 0
  private var isFinished = false

  let marksEnd = true

  init(_ input: any AndroidBackupInput, key: borrowing AndroidMasterKey, subject: ByteString) {
    self.input = input
    self.subject = subject
    cipher = key.cipher(.decrypt)
  }

  func read(into target: UnsafeMutableRawBufferPointer) throws(InterchangeError) -> Int {
    while available == 0 && !isFinished { try decryptNext() }
    let count = min(target.count, available)
    target.copyBytes(from: plain[position..<(position + count)])
    position += count
    return count
  }

  private var available: Int {
    max(0, plain.count - position - (isFinished ? 0 : BlockCipher.blockSize))
  }

  private func decryptNext() throws(InterchangeError) {
    plain.removeFirst(position)
    position = 0
    let start = plain.count
    plain += repeatElement(0, count: StoredInput.portion)
    let count = try plain.withUnsafeMutableBufferPointer {
      (bytes: inout UnsafeMutableBufferPointer<UInt8>) throws(InterchangeError) in
      let room = UnsafeMutableRawBufferPointer(
        rebasing: UnsafeMutableRawBufferPointer(bytes)[start...])
      let count = try input.fill(room)
      let whole = count - count % BlockCipher.blockSize
      cipher.process(UnsafeMutableRawBufferPointer(rebasing: room[..<whole]))
      return count
    }
    plain.removeLast(StoredInput.portion - count)
    guard count % BlockCipher.blockSize == 0 else { throw damage("it is truncated") }
    if count < StoredInput.portion { try finish() }
  }

  private func finish() throws(InterchangeError) {
    guard let padding = BlockPadding.count(atEndOf: plain.span) else {
      throw damage(plain.isEmpty ? "it is truncated" : "its last block is damaged or missing")
    }
    plain.removeLast(padding)
    isFinished = true
  }

  private func damage(_ reason: String) -> InterchangeError {
    InterchangeError(.damaged, AndroidBackupHeader.action, subject: subject, reason: reason)
  }
}

/// The content of a zlib stream.
final class InflatedInput: AndroidBackupInput {
  private let input: any AndroidBackupInput
  private let subject: ByteString
  private var inflater: Inflater
  private var stored = [UInt8](repeating: 0, count: StoredInput.portion)
  private var position = 0
  private var end = 0
  /// The number of bytes after the stream so far.
  private var trailing = 0
  private var isEndRead = false

  /// The maximum number of zeros after the stream.
  private static let trailerLimit = 1 << 20
  let marksEnd = true

  init(_ input: any AndroidBackupInput, subject: ByteString) throws(InterchangeError) {
    self.input = input
    self.subject = subject
    do throws(CodecError) {
      inflater = try Inflater()
    } catch {
      throw InterchangeError(error, AndroidBackupHeader.action, subject: subject)
    }
  }

  func read(into target: UnsafeMutableRawBufferPointer) throws(InterchangeError) -> Int {
    if target.isEmpty { return 0 }
    while !inflater.isFinished {
      if position == end { try fillStored() }
      let produced = try inflate(into: target)
      if produced > 0 { return produced }
    }
    try requireEnd()
    return 0
  }

  /// Checks that only zeros follow the stream, because another one may have been appended, and
  /// reads the input to its end, which verifies the padding of an encrypted one.
  private func requireEnd() throws(InterchangeError) {
    while !isEndRead {
      trailing += end - position
      if trailing > Self.trailerLimit || stored[position..<end].contains(where: { $0 != 0 }) {
        throw InterchangeError(
          .damaged, AndroidBackupHeader.action, subject: subject,
          reason: "other data follows the end of its compressed data, and is missing")
      }
      isEndRead = try !readStored()
    }
  }

  private func inflate(into target: UnsafeMutableRawBufferPointer) throws(InterchangeError) -> Int {
    do throws(CodecError) {
      let (consumed, produced) = try inflater.inflate(
        stored.span.extracting(position..<end), into: target)
      position += consumed
      return produced
    } catch {
      var fault = InterchangeError(error, AndroidBackupHeader.action, subject: subject)
      fault.isSuspect = error.kind == .malformed
      throw fault
    }
  }

  private func fillStored() throws(InterchangeError) {
    if try !readStored() {
      throw InterchangeError(
        .damaged, AndroidBackupHeader.action, subject: subject,
        reason: "it is truncated: its compressed data has no end")
    }
  }

  /// Reads the next stored bytes. Returns false at the end.
  private func readStored() throws(InterchangeError) -> Bool {
    position = 0
    end = 0
    let input = input
    end = try stored.withUnsafeMutableBufferPointer {
      (bytes: inout UnsafeMutableBufferPointer<UInt8>) throws(InterchangeError) in
      try input.read(into: UnsafeMutableRawBufferPointer(bytes))
    }
    return end > 0
  }
}
