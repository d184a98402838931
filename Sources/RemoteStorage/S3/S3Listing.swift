internal import ArchiveStore
package import Codecs
package import SystemIO

/// One page of a listing (`ListObjectsV2`).
package struct S3Listing: Sendable, Hashable {
  /// An object of a page.
  package struct Object: Sendable, Hashable {
    package let key: ByteString
    package let size: UInt64
    /// The time of the put by the store's clock.
    package let modified: Timestamp
  }

  /// The objects in their order.
  package let objects: [Object]
  /// The common prefixes of further objects, each with the delimiter at its end.
  package let prefixes: [ByteString]
  /// The token for the next page, or nil if this is the last one.
  package let next: String?

  /// The bounds of a page: a thousand objects of about 600 bytes, and room for long keys.
  package static let limits: XMLElement.Limits = {
    var limits = XMLElement.Limits()
    (limits.bytes, limits.elements, limits.depth) = (8 << 20, 40_000, 16)
    return limits
  }()

  /// Reads a page.
  ///
  /// - Throws: the reason, if it is not an answer to a listing or contradicts itself.
  package init(reading bytes: [UInt8]) throws(S3Failure.Words) {
    let root: XMLElement
    do { root = try XMLElement(reading: bytes, limits: Self.limits) } catch {
      throw S3Failure.Words("returned an invalid response to a listing: \(error.reason)")
    }
    guard root.name == "ListBucketResult" else {
      throw S3Failure.Words("answers a listing with <\(ByteString(root.name))>")
    }
    let isEncoded = root.text(of: "EncodingType") == "url"
    var objects: [Object] = []
    var prefixes: [ByteString] = []
    var (keys, directories): (Set<ByteString>, Set<ByteString>) = ([], [])
    for child in root.children {
      if child.name == "Contents" {
        let object = try Self.object(child, isEncoded: isEncoded)
        guard keys.insert(object.key).inserted else {
          throw S3Failure.Words("lists '\(object.key)' twice")
        }
        objects.append(object)
      } else if child.name == "CommonPrefixes" {
        let prefix = try Self.name(child.text(of: "Prefix"), isEncoded: isEncoded)
        guard directories.insert(prefix).inserted else {
          throw S3Failure.Words("lists '\(prefix)' twice")
        }
        prefixes.append(prefix)
      }
    }
    let token = root.text(of: "NextContinuationToken") ?? ""
    let isTruncated = root.text(of: "IsTruncated") == "true"
    guard !isTruncated || !token.isEmpty else {
      throw S3Failure.Words("ends a page of a listing without a token for the next one")
    }
    next = isTruncated ? token : nil
    self.objects = objects
    self.prefixes = prefixes
  }

  private static func object(
    _ element: XMLElement, isEncoded: Bool
  ) throws(S3Failure.Words) -> Object {
    let key = try name(element.text(of: "Key"), isEncoded: isEncoded)
    guard let size = element.text(of: "Size").flatMap({ UInt64($0) }),
      let time = element.text(of: "LastModified").flatMap({ Timestamp(rfc3339: $0) })
    else { throw S3Failure.Words("lists '\(key)' without size and time") }
    return Object(key: key, size: size, modified: time)
  }

  private static func name(
    _ text: String?, isEncoded: Bool
  ) throws(S3Failure.Words) -> ByteString {
    guard let text, !text.isEmpty else { throw S3Failure.Words("lists an object without a key") }
    guard isEncoded else { return ByteString(text) }
    guard let bytes = PercentEncoding.decode(text.utf8, plusIsSpace: true) else {
      throw S3Failure.Words("lists a key that is not encoded")
    }
    return ByteString(bytes)
  }
}

extension S3Failure {
  /// The words after the name of the host: "answers …".
  package struct Words: Error, Sendable, Hashable {
    package let text: String
    init(_ text: String) { self.text = text }
  }
}
