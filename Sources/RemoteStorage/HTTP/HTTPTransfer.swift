internal import CCurl
internal import SystemIO

/// One request while libcurl makes it: its callbacks provide the body and receive the answer.
final class HTTPTransfer {
  private let source: HTTPBody
  private let limit: Int
  private let configuration: HTTPConfiguration
  /// Whether the operation was already being stopped at the beginning, so that this request is part
  /// of the cleanup.
  private let isCleaningUp: Bool
  /// The time of the last byte in either direction, and that of the request to stop, in seconds of
  /// the monotonic clock.
  private var lastMovement: Double
  private var stopped: Double?
  private var pace: TransferPace
  /// Whether the request reads: then a slow answer is not a sign that the store is doing long work.
  private let isReading: Bool
  /// The descriptor of the connection, which belongs to the handle.
  var socket: UnsafePointer<CInt>?

  private var sent: UInt64 = 0
  private var portion: [UInt8] = []
  private var status = 0
  private var headers: [(name: String, value: String)] = []
  private var headerSize = 0
  private var body: [UInt8]
  /// The bytes of an error's body so far.
  private var errorSize = 0
  /// The reason why a callback ended the request.
  private(set) var failure: HTTPFailure?

  /// The number of bytes of an error's body that are kept.
  private static let errorLimit = 64 << 10
  /// The number of bytes of an error's body that are awaited.
  private static let discardLimit = 1 << 20
  /// The maximum size of all headers of an answer.
  private static let headerLimit = 64 << 10

  /// - Parameter buffer: the storage of the body, which `takeBody` returns.
  init(_ request: HTTPRequest, _ configuration: HTTPConfiguration, buffer: inout [UInt8]) {
    source = request.body
    limit = request.limit
    self.configuration = configuration
    isCleaningUp = configuration.isStopping()
    lastMovement = Host.monotonicSeconds()
    stopped = isCleaningUp ? lastMovement : nil
    pace = TransferPace(
      window: configuration.rateWindow, minimum: configuration.minimumRate, from: lastMovement)
    isReading = request.method == .get || request.method == .head
    body = []
    swap(&body, &buffer)
    body.removeAll(keepingCapacity: true)
  }

  /// Returns the transfer of a callback's context, which is alive while libcurl works.
  static func from(_ context: UnsafeMutableRawPointer?) -> HTTPTransfer {
    guard let context else { preconditionFailure("a callback of libcurl without its context") }
    return Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue()
  }

  /// The answer, or nil if its status has not arrived.
  var response: HTTPResponse? {
    status == 0 ? nil : HTTPResponse(status: status, headers: headers)
  }

  /// Returns the body and releases it.
  func takeBody() -> [UInt8] {
    defer { body = [] }
    return body
  }

  /// The seconds without a byte after which a request ends once a stop was requested: one in
  /// progress, and one that begins later.
  private static let (patience, cleanupPatience) = (0.5, 3.0)

  /// Whether the request is to be ended, because the operation was asked to stop and no bytes move.
  /// A request whose bytes move is completed, so that the sent part of an object is not wasted.
  var isCancelled: Bool {
    guard configuration.isStopping() else { return false }
    let now = Host.monotonicSeconds()
    let since = max(stopped ?? now, lastMovement)
    if stopped == nil { stopped = now }
    guard now - since >= (isCleaningUp ? Self.cleanupPatience : Self.patience) else { return false }
    if failure == nil { failure = HTTPFailure(.cancelled, "it was interrupted") }
    return true
  }

  /// Whether the request is to be ended, because too few bytes move for it ever to end.
  ///
  /// A store that needs a long time for a request may send a space now and then meanwhile (as S3
  /// does for the parts of an upload): it gets four times as long.
  ///
  /// - Parameter moved: the bytes that have moved in both directions.
  func isStalled(_ moved: UInt64) -> Bool {
    let factor = isReading || sent < source.count ? 1.0 : 4.0
    let now = Host.monotonicSeconds()
    guard pace.isStalled(at: now, total: moved, factor: factor) else { return false }
    if failure == nil {
      let bytes = Int(pace.minimum * pace.window)
      let seconds = Int(pace.window * factor)
      failure = HTTPFailure(
        .timedOut, "fewer than \(bytes) bytes were transferred within \(seconds) seconds")
    }
    return true
  }

  /// Reports that bytes were transferred, which may wait to limit the rate.
  private func report(_ direction: HTTPDirection, _ count: Int) {
    guard let onTransfer = configuration.onTransfer else { return }
    let start = Host.monotonicSeconds()
    onTransfer(direction, count)
    pace.didPause(Host.monotonicSeconds() - start)
  }

  /// Records that bytes moved. An answer that reports a problem of the host is not a sign that it
  /// works.
  private func noteMovement() {
    lastMovement = Host.monotonicSeconds()
    if status < 500 { configuration.outages?.didHear() }
  }

  private func fail(_ kind: HTTPFailure.Kind, _ reason: String) {
    if failure == nil { failure = HTTPFailure(kind, reason) }
  }
}

// MARK: - The answer

extension HTTPTransfer {
  /// Receives a part of the body. Returns its size, or a different number to end the request.
  func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    acknowledge()
    report(.download, bytes.count)
    noteMovement()
    if status >= 300 {
      errorSize += bytes.count
      guard errorSize <= Self.discardLimit else {
        fail(.unusable, "the answer with status \(status) has more than 1 MiB")
        return bytes.count &+ 1
      }
      body.append(contentsOf: bytes.prefix(max(0, Self.errorLimit - body.count)))
      return bytes.count
    }
    guard bytes.count <= limit - body.count else {
      fail(.tooLarge, "the answer has more than \(limit) bytes")
      return bytes.count &+ 1
    }
    if body.isEmpty { reserveBody() }
    body.append(contentsOf: bytes)
    return bytes.count
  }

  /// The maximum announced size for which memory is reserved.
  private static let reservedLimit = 16 << 20

  /// Reserves memory for the announced size of the body, which would otherwise be copied as it
  /// grows.
  private func reserveBody() {
    guard let field = headers.first(where: { $0.name == "content-length" }),
      let size = Int(field.value), size > body.capacity
    else { return }
    body.reserveCapacity(min(size, limit, Self.reservedLimit))
  }

  /// Receives a status line, a header or the empty line after them.
  func receiveHeader(_ bytes: UnsafeRawBufferPointer) -> Int {
    defer { noteMovement() }
    headerSize += bytes.count
    guard headerSize <= Self.headerLimit else {
      fail(.unusable, "the headers of the answer have more than \(Self.headerLimit) bytes")
      return bytes.count &+ 1
    }
    let line = String(decoding: bytes, as: UTF8.self)
    if line.hasPrefix("HTTP/") {
      // A separate answer, such as 100 (Continue), may come first.
      let words = line.split(separator: " ", maxSplits: 2)
      status = words.count > 1 ? Int(words[1].prefix(3).filter(\.isNumber)) ?? 0 : 0
      headers = []
    } else if let colon = line.firstIndex(of: ":") {
      let value = line[line.index(after: colon)...]
      let trimmed = value.utf8.drop { $0 <= 0x20 }.reversed().drop { $0 <= 0x20 }.reversed()
      headers.append((line[..<colon].lowercased(), String(decoding: Array(trimmed), as: UTF8.self)))
    } else {
      acknowledge()
    }
    return bytes.count
  }

  /// Acknowledges what has arrived of the answer.
  ///
  /// A server with Nagle's algorithm (RFC 9293, 3.7.4), as Ceph RGW has by default, sends the next
  /// small part of an answer, such as the body after the headers, when the part before it is
  /// acknowledged, and the system delays that by 40 ms.
  private func acknowledge() {
    if let socket { sandboxctl_curl_acknowledge(socket.pointee) }
  }
}

// MARK: - The request

extension HTTPTransfer {
  /// Fills memory with the next bytes of the body. Returns their number; 0 at the end.
  func provide(_ room: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(room.count, configuration.uploadPortion ?? room.count)
    do throws(SystemError) {
      try source.read(count: count, at: sent, into: &portion)
    } catch {
      fail(.source(error), error.reason)
      return Int(CURL_READFUNC_ABORT)
    }
    if portion.isEmpty, sent < source.count {
      fail(.source(.replaced("the body of a request")), "the file became shorter")
      return Int(CURL_READFUNC_ABORT)
    }
    room.copyBytes(from: portion)
    sent += UInt64(portion.count)
    report(.upload, portion.count)
    // This comes after `onTransfer`, which may have waited.
    noteMovement()
    return portion.count
  }

  /// Moves to an offset of the body: libcurl starts over if a kept connection was closed.
  func seek(to offset: curl_off_t, origin: CInt) -> CInt {
    guard origin == 0, offset >= 0, UInt64(offset) <= source.count else {
      return CInt(CURL_SEEKFUNC_FAIL)
    }
    sent = UInt64(offset)
    return CInt(CURL_SEEKFUNC_OK)
  }
}
