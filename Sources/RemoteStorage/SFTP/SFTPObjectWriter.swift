internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// A file in the lease directory that becomes an object by a rename.
///
/// Not thread-safe. Bytes are sent as they are appended, in pieces; several are unanswered at any
/// time, and those are kept. If the connection is lost, the file is opened again and they are sent
/// again. A server that restarted may have lost others, so the whole file is then read and compared
/// with its digest before it is committed.
///
/// The file is addressed by its path, so that the rename fails if the lease was removed. After a
/// failed sync the same file is never synced again (`LocalStorage.Writer`): its bytes are copied
/// into a new one, verified by the digest, and that one is synced, once.
final class SFTPObjectWriter: ObjectWriter {
  private let storage: SFTPStorage
  private let directory: ObjectPath
  private var path: ObjectPath
  private var transfer: Transfer
  /// The bytes that do not fill a piece yet.
  private var tail: [UInt8] = []
  private var size: UInt64 = 0
  private var isPresent = true
  private var isVerified = false
  private var wasRenameSent = false
  /// Whether the object has its name.
  private var isNamed = false

  /// Creates the file.
  init(_ storage: SFTPStorage, in directory: ObjectPath) throws(StoreError) {
    (self.storage, self.directory) = (storage, directory)
    var name = storage.temporary(in: directory)
    do throws(SFTPFailure) {
      transfer = try storage.session.perform { connection, isRepeated throws(SFTPFailure) in
        if isRepeated {
          // The lost answer may have been that the file was created.
          connection.post(.remove(storage.serverPath(name)))
          name = storage.temporary(in: directory)
        }
        try storage.requireDirectory(directory, connection)
        let handle = try connection.open(
          storage.serverPath(name), [.write, .create, .exclusive], permissions: 0o600)
        return Transfer(connection, handle)
      }
    } catch { throw storage.writeError(error, .create, at: directory) }
    path = name
  }

  deinit { discard() }

  func append(_ bytes: [UInt8]) throws(StoreError) {
    size += UInt64(bytes.count)
    let piece = transfer.connection.limits.writePiece
    var rest = bytes[...]
    if !tail.isEmpty {
      // The server of a new connection may accept only shorter pieces.
      let filling = rest.prefix(max(0, piece - tail.count))
      tail.append(contentsOf: filling)
      rest = rest.dropFirst(filling.count)
      guard tail.count >= piece else { return }
      enqueue(tail[...])
      tail = []
    }
    while rest.count >= piece {
      enqueue(rest.prefix(piece))
      rest = rest.dropFirst(piece)
    }
    tail.append(contentsOf: rest)
    try sending { transfer throws(SFTPFailure) in try transfer.send() }
  }

  /// Adds a piece to be sent, after all earlier ones.
  private func enqueue(_ bytes: ArraySlice<UInt8>) {
    transfer.enqueue(bytes)
  }

  /// Makes calls that send, on a new connection if the last one was lost.
  private func sending(
    _ body: (inout Transfer) throws(SFTPFailure) -> Void
  ) throws(StoreError) {
    do throws(SFTPFailure) {
      try storage.session.perform { connection, _ throws(SFTPFailure) in
        if connection !== transfer.connection { try reopen(connection) }
        try body(&transfer)
      }
    } catch { throw storage.writeError(error, .write, at: path) }
  }

  /// Opens the file again after a lost connection.
  private func reopen(_ connection: SFTPConnection) throws(SFTPFailure) {
    let name = storage.serverPath(path)
    guard let found = try connection.statusIfPresent(name) else {
      throw .unusable(SystemError(.write, name, number: ErrorNumber.missing))
    }
    guard found.kind == .file || found.kind == .unknown else {
      throw .unusable(SystemError(.write, name, number: ErrorNumber.link))
    }
    transfer.continueOn(connection, try connection.open(name, .write))
  }

  func discard() {
    guard isPresent else { return }
    isPresent = false
    transfer.end()
    // Without a connection the file stays until the lease is removed.
    guard transfer.connection.isOpen else { return }
    transfer.connection.openFiles.drop(storage.serverPath(path))
    _ = try? transfer.connection.call(.remove(storage.serverPath(path)))
  }
}

// MARK: - Committing

extension SFTPObjectWriter {
  func commit(as target: ObjectPath, digest: Digest, isReadSoon: Bool) throws(StoreError) {
    transfer.enqueue(tail[...])
    tail = []
    if try !sync() { return try makeAgain(target, digest) }
    try verify(digest)
    try name(target, digest)
  }

  /// Sends the rest, and makes the content durable. Returns false if the server failed to sync it.
  private func sync() throws(StoreError) -> Bool {
    var isDone = true
    try sending { transfer throws(SFTPFailure) in isDone = try transfer.finish() }
    return isDone
  }

  /// Compares a file that was sent over several connections with its digest.
  private func verify(_ digest: Digest) throws(StoreError) {
    guard transfer.wasResumed, !isVerified else { return }
    let (name, size) = (storage.serverPath(path), size)
    let found = try storage.perform(.read, at: path) { connection, _ throws(SFTPFailure) in
      try storage.digest(name, size: size, connection)
    }
    guard found == digest else {
      throw StoreError(
        .system, "store", subject: "\(path)",
        reason: "the server lost bytes when the connection was interrupted",
        hint: "run the command again: data stored so far is reused")
    }
    isVerified = true
  }

  /// Gives the object its name, durably.
  private func name(_ target: ObjectPath, _ digest: Digest) throws(StoreError) {
    transfer.end()
    do throws(SFTPFailure) {
      try storage.session.perform { connection, _ throws(SFTPFailure) in
        try storage.requireDirectory(target.directory, connection)
        let directory = try storage.syncable(target.directory, connection)
        var synced: SFTPReply?
        if try !isNamed(target, digest, on: connection) {
          wasRenameSent = true
          synced = try storage.move(path, to: target, connection, syncing: directory)
        }
        (isPresent, isNamed) = (false, true)
        guard let directory else { return }
        if let synced { return try SFTPConnection.requireSuccess(synced) }
        try connection.perform(.sync(directory.handle))
      }
    } catch {
      let failure = storage.writeError(error, isNamed ? .sync : .rename, at: target)
      guard isNamed else { throw failure }
      throw StoreError(
        .notDurable, failure.action, subject: failure.subject, reason: failure.reason,
        hint: failure.hint, cause: failure.cause)
    }
  }

  /// Whether an earlier attempt, whose answer was lost, has renamed the file: then it is gone, and
  /// the target has its content.
  private func isNamed(
    _ target: ObjectPath, _ digest: Digest, on connection: SFTPConnection
  ) throws(SFTPFailure) -> Bool {
    if isNamed { return true }
    guard wasRenameSent else { return false }
    let isGone = try connection.statusIfPresent(storage.serverPath(path)) == nil
    guard isGone else { return false }
    return try storage.digest(storage.serverPath(target), size: size, connection) == digest
  }

  /// Copies the written bytes into a new file after a failed sync, verifies them and commits it.
  private func makeAgain(_ target: ObjectPath, _ digest: Digest) throws(StoreError) {
    let copy = try SFTPObjectWriter(storage, in: directory)
    var hash = Blake2b()
    var offset: UInt64 = 0
    while offset < size {
      let count = Int(min(size - offset, 1 << 20))
      let bytes = try storage.load(path, offset: offset, count: count)
      hash.update(bytes)
      try copy.append(bytes)
      offset += UInt64(count)
    }
    discard()
    copy.transfer.enqueue(copy.tail[...])
    guard hash.finish() == digest, try copy.sync() else {
      let cause = SystemError(
        .sync, storage.serverPath(path), number: ErrorNumber.inputOutput)
      throw StoreError(
        .system, "write to the repository", subject: storage.location, reason: cause.reason,
        hint: "check the disk and the logs of the server", cause: cause)
    }
    try copy.verify(digest)
    try copy.name(target, digest)
  }
}

// MARK: - Sending

extension SFTPObjectWriter {
  /// The pieces of a file that are being sent.
  struct Transfer {
    private struct Piece {
      let offset: UInt64
      let bytes: ArraySlice<UInt8>
    }

    private(set) var connection: SFTPConnection
    private(set) var file: SFTPOpenFile?
    private var exchange: SFTPConnection.Exchange
    /// The pieces that were not sent, in order.
    private var waiting: [Piece] = []
    /// The pieces without an answer, by the numbers of their requests.
    private var sent: [UInt32: Piece] = [:]
    private var offset: UInt64 = 0
    /// The failure of a piece, after which the file is incomplete.
    private var failure: SFTPFailure?
    /// Whether the file was sent over several connections.
    private(set) var wasResumed = false

    init(_ connection: SFTPConnection, _ handle: SFTPHandle) {
      self.connection = connection
      file = connection.file(handle)
      exchange = connection.exchange()
    }

    /// Adds bytes at the end of the file. They are not sent yet.
    mutating func enqueue(_ bytes: ArraySlice<UInt8>) {
      if bytes.isEmpty { return }
      waiting.append(Piece(offset: offset, bytes: bytes))
      offset += UInt64(bytes.count)
    }

    /// Sends waiting pieces, and receives answers as far as necessary.
    mutating func send() throws(SFTPFailure) {
      if let failure { throw failure }
      guard let file else { return }
      let window = SFTPConnection.window(ofPieces: connection.limits.writePiece)
      var next = 0
      defer { waiting.removeFirst(next) }
      while next < waiting.count {
        while exchange.pending >= window { try receive() }
        divide(next, connection.limits.writePiece)
        let piece = waiting[next]
        let request = SFTPRequest.write(file.handle, offset: piece.offset, bytes: piece.bytes)
        sent[try exchange.send(request)] = piece
        next += 1
      }
    }

    /// Divides a piece that is longer than the server accepts, which can happen after a reconnect.
    private mutating func divide(_ number: Int, _ length: Int) {
      let piece = waiting[number]
      guard piece.bytes.count > length else { return }
      waiting[number] = Piece(offset: piece.offset, bytes: piece.bytes.prefix(length))
      let rest = Piece(
        offset: piece.offset + UInt64(length), bytes: piece.bytes.dropFirst(length))
      waiting.insert(rest, at: number + 1)
    }

    /// Sends waiting pieces and a sync, if the server has it, and receives all answers. The server
    /// processes them in order (SFTP 6.1). Returns false if only the sync failed.
    mutating func finish() throws(SFTPFailure) -> Bool {
      try send()
      guard let file, connection.has(.sync) else {
        while exchange.pending > 0 { try receive() }
        return true
      }
      let sync = try exchange.send(.sync(file.handle))
      var isSynced = true
      while exchange.pending > 0 {
        let (id, reply) = try exchange.next()
        if id != sync {
          try receive(id, reply)
        } else if case .refused = SFTPConnection.failure(reply) {
          isSynced = false
        } else {
          try SFTPConnection.requireSuccess(reply)
        }
      }
      return isSynced
    }

    private mutating func receive() throws(SFTPFailure) {
      let (id, reply) = try exchange.next()
      try receive(id, reply)
    }

    private mutating func receive(_ id: UInt32, _ reply: SFTPReply) throws(SFTPFailure) {
      sent[id] = nil
      do throws(SFTPFailure) {
        try SFTPConnection.requireSuccess(reply)
      } catch {
        failure = error
        throw error
      }
    }

    /// Continues on another connection: pieces without an answer are sent again.
    mutating func continueOn(_ connection: SFTPConnection, _ handle: SFTPHandle) {
      waiting = sent.values.sorted { $0.offset < $1.offset } + waiting
      sent = [:]
      self.connection = connection
      file = connection.file(handle)
      exchange = connection.exchange()
      wasResumed = true
    }

    /// Closes the file.
    mutating func end() { file = nil }
  }
}

extension SFTPConnection {
  /// The number of unanswered pieces of one transfer: enough for 4 MiB, which fills a link of 1
  /// Gbit/s with a round trip of 30 ms.
  static func window(ofPieces length: Int) -> Int {
    max(4, min(window, (4 << 20) / max(1, length)))
  }
}
