internal import ArchiveStore
internal import Codecs
package import SystemIO

/// An error answer of a store: its status and, as far as the body has them, its code and message.
/// The body may be empty.
package struct S3Refusal: Sendable, Hashable {
  /// The status of the answer, 300 to 599.
  package let status: Int
  /// The error code; if the body has none, the usual one for the status.
  package let code: String
  /// The message for people, shortened; empty if there is none.
  package let message: String
  /// The region of the bucket, if the store reports it.
  package let region: String?
  /// The host that the store names instead, if it does.
  package let host: String?
  /// The time by the store's clock, if it is in the answer.
  package let serverTime: Timestamp?
  /// The time by this machine's clock.
  package let localTime: Timestamp
  /// Whether the body is a web page.
  package let isWebPage: Bool
  /// The time in seconds after which the store accepts another request.
  package let wait: Double?

  /// The bounds of an error's body.
  static let limits: XMLElement.Limits = {
    var limits = XMLElement.Limits()
    (limits.bytes, limits.elements, limits.depth) = (64 << 10, 1000, 16)
    return limits
  }()

  private static let webPage = "WebPage"

  /// Reads an answer.
  package init(_ response: HTTPResponse, body: [UInt8], now: Timestamp) {
    status = response.status
    localTime = now
    isWebPage = Self.isWebPage(response, body: body)
    let root = try? XMLElement(reading: body, limits: Self.limits)
    // Some stores answer with <ErrorResponse><Error>.
    let error = root?.name == "Error" ? root : root?.child("Error")
    let given = error?.text(of: "Code") ?? ""
    // A page says nothing about an object, whatever its status.
    code =
      isWebPage
      ? Self.webPage : Self.isCode(given) ? given : Self.usualCode(response.status)
    message = Self.shortened(error?.text(of: "Message") ?? "")
    region = (response.header("x-amz-bucket-region") ?? error?.text(of: "Region"))
      .flatMap { Self.isCode($0) ? $0 : nil }
    let location = response.header("location")?.split(separator: "/").dropFirst().first
    host = (error?.text(of: "Endpoint") ?? location.map { String($0) })
      .flatMap { $0.isEmpty ? nil : Self.shortened($0) }
    serverTime =
      error?.text(of: "ServerTime").flatMap { Timestamp(rfc3339: $0) }
      ?? response.header("date").flatMap(HTTPDate.time)
    wait = response.header("retry-after").flatMap { UInt32($0) }.map { min(Double($0), 60) }
  }

  /// Whether the answer is a page for people: a server other than a store has answered.
  ///
  /// - Parameter typeCounts: whether the type in the header is enough. moto answers a successful
  ///   put with the type of a page and without one.
  static func isWebPage(
    _ response: HTTPResponse, body: [UInt8], typeCounts: Bool = true
  ) -> Bool {
    let type = response.header("content-type")?.lowercased()
    if typeCounts, type?.contains("html") == true { return true }
    let start = String(decoding: body.drop { $0 <= 0x20 }.prefix(14), as: UTF8.self).lowercased()
    return start.hasPrefix("<!doctype html") || start.hasPrefix("<html")
  }

  private static func isCode(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
          UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }

  /// Returns at most 200 characters, in one line and without control characters.
  private static func shortened(_ text: String) -> String {
    ByteString(String(text.prefix(200))).description
  }

  private static func usualCode(_ status: Int) -> String {
    switch status {
    case 300...399: "Redirect"
    case 401, 403: "AccessDenied"
    case 404: "NoSuchKey"
    case 405: "MethodNotAllowed"
    case 408: "RequestTimeout"
    case 412: "PreconditionFailed"
    case 416: "InvalidRange"
    case 429: "TooManyRequests"
    case 501: "NotImplemented"
    case 503: "ServiceUnavailable"
    case 507: "InsufficientStorage"
    case 500...: "InternalError"
    default: "status \(status)"
    }
  }
}

extension S3Refusal {
  /// The difference between the clocks, positive if the store's is ahead, in seconds.
  var clockDifference: Double? { serverTime?.since(localTime) }

  /// Whether the store refuses the request because of the time at which it was signed. Its answer
  /// may be without a body; stores accept 15 minutes.
  package var isSkewed: Bool {
    if code == "RequestTimeTooSkewed" || code == "RequestExpired" { return true }
    guard status == 403 || status == 400, let difference = clockDifference else { return false }
    return abs(difference) > 900
  }

  /// Whether the credentials are no longer valid, so that new ones may be.
  package var isExpired: Bool {
    ["ExpiredToken", "TokenRefreshRequired", "InvalidToken"].contains(code)
  }

  /// Whether the same request may succeed later: the store has a problem, or the body was damaged
  /// in transit.
  package var isPassing: Bool {
    switch status {
    // A server without a feature, or without space, will not get it soon.
    case 501, 505, 507: false
    case 500..., 408, 425, 429: true
    default: Self.passingCodes.contains(code)
    }
  }

  /// Whether the store, or a proxy before it, gives this answer while it restarts or is overloaded.
  var isOutage: Bool { isPassing && (status >= 500 || status == 429) }

  private static let passingCodes: Set<String> = [
    "RequestTimeout", "SlowDown", "Throttling", "ThrottlingException", "TooManyRequests",
    "BandwidthLimitExceeded", "InternalError", "ServiceUnavailable", "OperationAborted",
    "ConditionalRequestConflict", "BadDigest", wrongHash, "IncompleteBody",
  ]
  private static let wrongHash = "XAmzContentSHA256Mismatch"

  /// Whether the body does not have the signed SHA-256.
  var isWrongHash: Bool { code == Self.wrongHash }

  /// Whether the store may require the MD5 of the body, as AWS does for locked objects.
  var mayWantMD5: Bool {
    status == 400 && (code == "InvalidRequest" || code.contains("MD5") || message.contains("MD5"))
  }

  /// Whether the object, or the upload in parts, does not exist.
  package var isMissing: Bool { code == "NoSuchKey" || code == "NoSuchUpload" }

  /// Whether the bucket does not exist.
  package var isBucketMissing: Bool { code == "NoSuchBucket" }

  /// Whether the object that the request was to create already exists.
  package var isExisting: Bool { status == 412 }

  /// Whether the store does not support the request. Some answer with 400 to an unknown header.
  package var isUnsupported: Bool {
    status == 501 || status == 405 || code == "NotImplemented" || code == "InvalidArgument"
      || code == "InvalidRequest"
  }
}
