internal import Codecs
package import SystemIO

/// The removal of several objects by one request (`DeleteObjects`).
package enum S3Deletion {
  /// The maximum number of objects of a request.
  package static let limit = 1000

  /// Returns the body of a request, or nil if a key has a character that XML cannot represent.
  package static func body(_ keys: [ByteString]) -> [UInt8]? {
    var text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    text += "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>"
    for key in keys {
      guard let key = key.utf8.flatMap({ XMLElement.escaped($0) }) else { return nil }
      text += "<Object><Key>\(key)</Key></Object>"
    }
    return Array((text + "</Delete>").utf8)
  }

  /// An object that was not removed.
  package struct Problem: Sendable, Hashable {
    package let key: ByteString
    package let code: String
    package let message: String
  }

  /// Returns the objects that were not removed. Missing ones count as removed.
  ///
  /// - Throws: the reason, if it is not an answer to a removal.
  package static func problems(reading bytes: [UInt8]) throws(S3Failure.Words) -> [Problem] {
    // With Quiet some stores answer without a body.
    if bytes.isEmpty { return [] }
    let root: XMLElement
    do { root = try XMLElement(reading: bytes, limits: S3Listing.limits) } catch {
      throw S3Failure.Words("returned an invalid response to a removal: \(error.reason)")
    }
    guard root.name == "DeleteResult" else {
      throw S3Failure.Words("answers a removal with <\(ByteString(root.name))>")
    }
    return root.children("Error").map { error in
      Problem(
        key: ByteString(error.text(of: "Key") ?? ""), code: error.text(of: "Code") ?? "",
        message: error.text(of: "Message") ?? "")
    }.filter { $0.code != "NoSuchKey" }
  }
}
