internal import CCurl
package import SystemIO

/// A request without an answer, or without a usable one.
package struct HTTPFailure: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kinds of failure.
  package enum Kind: Sendable, Hashable {
    /// The host has no address, or refuses connections.
    case unreachable
    /// No bytes, or too few, arrived within the time limit.
    case timedOut
    /// The connection ended before the answer did.
    case dropped
    /// The other end is not the expected host, or does not use TLS.
    case insecure
    /// The body of the answer has more bytes than the request accepts.
    case tooLarge
    /// The operation was asked to stop.
    case cancelled
    /// The URL or the configuration cannot be used, or the server sends answers without end.
    case unusable
    /// The body of the request could not be read.
    case source(SystemError)
  }

  package let kind: Kind
  /// The reason in plain words, without the URL, headers or secrets.
  package let reason: String

  /// Creates a failure.
  package init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }

  /// Whether the same request may succeed later.
  package var isPassing: Bool { kind == .unreachable || kind == .timedOut || kind == .dropped }

  package var description: String { reason }
}

extension HTTPFailure {
  /// Returns the failure for a result of libcurl (libcurl-errors(3)) and its message.
  static func curl(_ code: CURLcode, _ message: String) -> HTTPFailure {
    let fallback = String(cString: curl_easy_strerror(code))
    let reason = words(message.isEmpty ? fallback : message)
    return HTTPFailure(kind(of: code), reason)
  }

  private static func kind(of code: CURLcode) -> Kind {
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT:
      .unreachable
    case CURLE_OPERATION_TIMEDOUT: .timedOut
    // A handshake also fails if the connection is lost: the message shows which case it is.
    case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE,
      CURLE_SSL_CONNECT_ERROR, CURLE_HTTP2, CURLE_WEIRD_SERVER_REPLY, CURLE_AGAIN,
      CURLE_SEND_FAIL_REWIND:
      .dropped
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_ISSUER_ERROR, CURLE_USE_SSL_FAILED, CURLE_SSL_CIPHER:
      .insecure
    default: .unusable
    }
  }

  /// Returns a message as part of a sentence: without a capital letter and a full stop.
  private static func words(_ message: String) -> String {
    var text = message
    while let last = text.last, last == "." || last.isWhitespace { text.removeLast() }
    guard let first = text.first, text.dropFirst().first?.isLowercase == true else { return text }
    return first.lowercased() + text.dropFirst()
  }
}
