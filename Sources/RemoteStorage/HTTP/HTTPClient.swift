internal import CCurl
internal import Synchronization
internal import SystemIO

/// Makes requests over HTTP and HTTPS with libcurl.
///
/// Each thread that makes a request has exclusive use of an easy handle. Handles, with their
/// connections, are kept for later requests. The last one used is taken first because its
/// connection is the least likely to have been closed. Storage is called by worker threads that
/// wait for each answer, so a multi handle would only add a thread that forwards requests.
///
/// Redirects are not followed: the credentials of a request are only for its host.
package final class HTTPClient: Sendable {
  private let configuration: HTTPConfiguration
  private let idle = Mutex<[CurlHandle]>([])

  /// Creates a client without connections.
  package init(_ configuration: HTTPConfiguration = HTTPConfiguration()) {
    self.configuration = configuration
  }

  /// Whether the operation was asked to stop.
  package var isStopping: Bool { configuration.isStopping() }

  /// Makes a request. `buffer` receives the body of the answer and keeps its capacity.
  ///
  /// At most 64 KiB of the body of an error (status 300 and above) are kept.
  ///
  /// - Throws: if there is no complete answer.
  package func send(
    _ request: HTTPRequest, into buffer: inout [UInt8]
  ) throws(HTTPFailure) -> HTTPResponse {
    configuration.onRequest?()
    let handle = try takeHandle()
    let transfer = HTTPTransfer(request, configuration, buffer: &buffer)
    defer { buffer = transfer.takeBody() }
    let response = try handle.perform(request, transfer, by: configuration)
    // After a failure the state of the connection is unknown, so it is closed together with the
    // handle.
    idle.withLock { $0.append(handle) }
    return response
  }

  private func takeHandle() throws(HTTPFailure) -> CurlHandle {
    if let kept = idle.withLock({ $0.popLast() }) { return kept }
    return try CurlHandle()
  }
}

/// The C library.
private enum CurlLibrary {
  /// The reason why the library cannot be used, for example that it is not installed; nil if it is
  /// loaded and initialized.
  static let fault = sandboxctl_curl_start().map { String(cString: $0) }
}

/// An easy handle of libcurl with its connections. For use by one thread at a time.
private final class CurlHandle: @unchecked Sendable {
  private let raw: UnsafeMutableRawPointer
  private let message: UnsafeMutablePointer<CChar>
  /// The descriptor of the newest connection. If libcurl tried two addresses of a host at once, the
  /// other attempt may have won: then acknowledgments are only sent later.
  private let socket: UnsafeMutablePointer<CInt>

  init() throws(HTTPFailure) {
    let fault = CurlLibrary.fault
    guard fault == nil, let raw = curl_easy_init() else {
      throw HTTPFailure(.unusable, "libcurl cannot be used: \(fault ?? "no memory")")
    }
    self.raw = raw
    message = .allocate(capacity: Int(CURL_ERROR_SIZE))
    message.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    socket = .allocate(capacity: 1)
    socket.initialize(to: -1)
  }

  deinit {
    curl_easy_cleanup(raw)
    message.deallocate()
    socket.deallocate()
  }

  /// Makes a request.
  func perform(
    _ request: HTTPRequest, _ transfer: HTTPTransfer, by configuration: HTTPConfiguration
  ) throws(HTTPFailure) -> HTTPResponse {
    // The reset keeps connections and resolved names.
    curl_easy_reset(raw)
    message[0] = 0
    var headers: UnsafeMutablePointer<curl_slist>?
    defer { curl_slist_free_all(headers) }
    // Without the first one, libcurl waits for permission before it sends a larger body; without
    // the second one, a proxy may compress what it sends (RFC 9110, 12.5.3).
    let fixed = ["Expect:", "Accept-Encoding: identity"]
    for line in fixed + request.headers.map({ Self.line($0.name, $0.value) }) {
      guard !line.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }),
        let longer = curl_slist_append(headers, line)
      else { throw HTTPFailure(.unusable, "a header has control characters") }
      headers = longer
    }
    try setConnection(configuration, hasBody: request.body.count > 0)
    try setRequest(request)
    try check(sandboxctl_curl_set_list(raw, CURLOPT_HTTPHEADER, headers))
    try setCallbacks(transfer)
    try check(sandboxctl_curl_set_socket(raw, socket))
    transfer.socket = UnsafePointer(socket)
    let code = withExtendedLifetime(transfer) { curl_easy_perform(raw) }
    if let failure = transfer.failure { throw failure }
    guard code == CURLE_OK else { throw .curl(code, String(cString: message)) }
    guard let response = transfer.response else {
      throw HTTPFailure(.dropped, "the answer has no status")
    }
    return response
  }

  /// Returns a header in libcurl's form: one without a value needs a semicolon.
  private static func line(_ name: String, _ value: String) -> String {
    value.isEmpty ? "\(name);" : "\(name): \(value)"
  }

  private func setConnection(
    _ configuration: HTTPConfiguration, hasBody: Bool
  ) throws(HTTPFailure) {
    // Signals could reach any thread.
    try set(CURLOPT_NOSIGNAL, 1)
    try set(CURLOPT_PROTOCOLS_STR, "http,https")
    try set(CURLOPT_FOLLOWLOCATION, 0)
    try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    try set(CURLOPT_TCP_KEEPALIVE, 1)
    try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    try set(CURLOPT_PATH_AS_IS, 1)
    try set(CURLOPT_BUFFERSIZE, 256 << 10)
    try set(CURLOPT_UPLOAD_BUFFERSIZE, 512 << 10)
    try set(CURLOPT_CONNECTTIMEOUT_MS, Int(configuration.connectTimeout * 1000))
    try set(CURLOPT_LOW_SPEED_LIMIT, 1)
    let idle = hasBody ? configuration.bodyIdleTimeout : configuration.idleTimeout
    try set(CURLOPT_LOW_SPEED_TIME, max(1, Int(idle)))
    try set(CURLOPT_USERAGENT, "sandboxctl")
    if let proxy = configuration.proxy { try set(CURLOPT_PROXY, proxy) }
    if let file = configuration.authorities {
      try set(CURLOPT_CAINFO, String(decoding: file.bytes, as: UTF8.self))
    }
    let text = UnsafeMutableRawPointer(message)
    try check(sandboxctl_curl_set_pointer(raw, CURLOPT_ERRORBUFFER, text))
  }

  private func setRequest(_ request: HTTPRequest) throws(HTTPFailure) {
    try set(CURLOPT_URL, request.url)
    switch request.method {
    case .get: try set(CURLOPT_HTTPGET, 1)
    case .head: try set(CURLOPT_NOBODY, 1)
    case .delete: try set(CURLOPT_CUSTOMREQUEST, "DELETE")
    case .put, .post:
      // Any body is sent as an upload, whatever the method.
      try set(CURLOPT_UPLOAD, 1)
      try set(CURLOPT_CUSTOMREQUEST, request.method.rawValue)
      let size = curl_off_t(clamping: request.body.count)
      try check(sandboxctl_curl_set_offset(raw, CURLOPT_INFILESIZE_LARGE, size))
    }
  }

  private func setCallbacks(_ transfer: HTTPTransfer) throws(HTTPFailure) {
    let context = Unmanaged.passUnretained(transfer).toOpaque()
    try check(sandboxctl_curl_set_pointer(raw, CURLOPT_WRITEDATA, context))
    try check(sandboxctl_curl_set_pointer(raw, CURLOPT_HEADERDATA, context))
    try check(sandboxctl_curl_set_pointer(raw, CURLOPT_READDATA, context))
    try check(sandboxctl_curl_set_pointer(raw, CURLOPT_SEEKDATA, context))
    try check(sandboxctl_curl_set_pointer(raw, CURLOPT_XFERINFODATA, context))
    try check(
      sandboxctl_curl_set_callback(raw, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
        let part = UnsafeRawBufferPointer(start: bytes, count: size * count)
        return HTTPTransfer.from(context).receive(part)
      })
    try check(
      sandboxctl_curl_set_callback(raw, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
        let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
        return HTTPTransfer.from(context).receiveHeader(line)
      })
    try check(
      sandboxctl_curl_set_callback(raw, CURLOPT_READFUNCTION) { bytes, size, count, context in
        let room = UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
        return HTTPTransfer.from(context).provide(room)
      })
    try check(
      sandboxctl_curl_set_seek(raw) { context, offset, origin in
        HTTPTransfer.from(context).seek(to: offset, origin: origin)
      })
    try set(CURLOPT_NOPROGRESS, 0)
    try check(
      sandboxctl_curl_set_progress(raw) { context, _, received, _, sent in
        let transfer = HTTPTransfer.from(context)
        let moved = UInt64(clamping: received) + UInt64(clamping: sent)
        return transfer.isCancelled || transfer.isStalled(moved) ? 1 : 0
      })
  }

  private func set(_ option: CURLoption, _ value: Int) throws(HTTPFailure) {
    try check(sandboxctl_curl_set_long(raw, option, value))
  }

  /// Sets a text option, which libcurl copies.
  private func set(_ option: CURLoption, _ value: String) throws(HTTPFailure) {
    try check(sandboxctl_curl_set_string(raw, option, value))
  }

  private func check(_ code: CURLcode) throws(HTTPFailure) {
    guard code != CURLE_OK else { return }
    throw HTTPFailure(.unusable, String(cString: curl_easy_strerror(code)))
  }
}
