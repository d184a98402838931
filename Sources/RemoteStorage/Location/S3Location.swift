package import SystemIO

/// Objects of a bucket of an S3-compatible store.
///
/// It has no credentials: they are in the environment or in the user's AWS files, or are printed by
/// a command.
package struct S3Location: Hashable, Sendable {
  /// The bucket, valid by the rules for general purpose buckets (AWS, "General purpose bucket
  /// naming rules").
  package var bucket: String
  /// The components before each object's name, joined by slashes, without one at either end; empty
  /// for the complete bucket. It is valid UTF-8.
  package var prefix: ByteString
  /// The URL of the server, without a path; nil for AWS's own.
  package var endpoint: String?
  /// The region; nil for that of the environment or the profile.
  package var region: String?
  /// Whether the bucket is in the path and not in the host; nil for the choice that suits the
  /// endpoint.
  package var pathStyle: Bool?
  /// The profile in the user's AWS files; nil for that of the environment or the default.
  package var profile: String?

  /// Creates a location from parts that are known to be valid.
  package init(
    bucket: String, prefix: ByteString, endpoint: String? = nil, region: String? = nil,
    pathStyle: Bool? = nil, profile: String? = nil
  ) {
    self.bucket = bucket
    self.prefix = prefix
    self.endpoint = endpoint
    self.region = region
    self.pathStyle = pathStyle
    self.profile = profile
  }

  /// The text that names bucket and prefix.
  package var text: ByteString {
    let bucket = ByteString("s3://\(bucket)")
    return prefix.isEmpty ? bucket : bucket.appending(prefix)
  }
}

extension S3Location {
  private static let form = "write 's3://bucket/prefix'"

  /// Parses the text after `s3:`.
  init(_ location: LocationText) throws(OperationError) {
    try location.requireLowercaseScheme("s3")
    try Self.requireURL(location)
    let rest = location.rest.dropFirst(2)
    let name = rest.prefix { $0 != ByteString.slash }
    try Self.requireNoServer(name, before: rest[name.endIndex...], location)
    self.init(
      bucket: try Self.bucket(name, location),
      prefix: try Self.prefix(rest[name.endIndex...].dropFirst(), location))
  }

  /// Refuses `s3:/bucket` and `s3:bucket` as typos, and restic's `s3:host/bucket` and
  /// `s3:https://host/bucket`, whose parts the hint shows.
  private static func requireURL(_ location: LocationText) throws(OperationError) {
    let rest = location.rest
    if rest.starts(with: "//".utf8) { return }
    let bytes = rest.drop { $0 == ByteString.slash }
    if bytes.contains(UInt8(ascii: "@")) {
      // The text before it may be a key, which no hint may show.
      throw location.refused("'//' is missing after 's3:'", hint: form)
    }
    let text = ByteString(bytes)
    for scheme in ["https://", "http://"] where bytes.starts(with: scheme.utf8) {
      let host = bytes.dropFirst(scheme.utf8.count).prefix { $0 != ByteString.slash }
      let after = ByteString(bytes[host.endIndex...].drop { $0 == ByteString.slash })
      throw location.refused(
        "the server is not part of it",
        hint: "write 's3://\(after.isEmpty ? "bucket/prefix" : after.description)' with "
          + "'--s3-endpoint \(scheme)\(ByteString(host))'")
    }
    let first = bytes.prefix { $0 != ByteString.slash }
    guard rest.first != ByteString.slash, first.endIndex < bytes.endIndex,
      first.contains(where: { ".:".utf8.contains($0) })
    else {
      let shown = text.isEmpty ? "bucket/prefix" : text.description
      throw location.refused("'//' is missing after 's3:'", hint: "write 's3://\(shown)'")
    }
    let after = ByteString(bytes[first.endIndex...].dropFirst())
    throw location.refused(
      "'//' is missing after 's3:'",
      hint: "write 's3://\(text)', or, if '\(ByteString(first))' is a server, 's3://\(after)' with "
        + "'--s3-endpoint https://\(ByteString(first))'")
  }

  /// Refuses keys and a server before the bucket.
  private static func requireNoServer(
    _ name: ArraySlice<UInt8>, before rest: ArraySlice<UInt8>, _ location: LocationText
  ) throws(OperationError) {
    let hasColon = name.contains(UInt8(ascii: ":"))
    if name.contains(UInt8(ascii: "@")) || (hasColon && rest.contains(UInt8(ascii: "@"))) {
      throw location.refused(
        "it contains a key",
        hint: "\(form), with the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or in a "
          + "profile of ~/.aws/credentials")
    }
    guard hasColon else { return }
    throw location.refused(
      "'\(ByteString(name))' is a server and not a bucket",
      hint: "\(form) with '--s3-endpoint https://\(ByteString(name))'")
  }

  private static func bucket(
    _ bytes: ArraySlice<UInt8>, _ location: LocationText
  ) throws(OperationError) -> String {
    if bytes.isEmpty { throw location.refused("it names no bucket", hint: form) }
    let name = String(decoding: bytes, as: UTF8.self)
    guard let fault = fault(ofBucket: bytes) else { return name }
    throw location.refused(
      "'\(ByteString(bytes))' is not a valid name of a bucket: \(fault)",
      hint: "\(form) with the name of an existing bucket")
  }

  /// Returns the reason why a name is not valid for a bucket, or nil if it is.
  private static func fault(ofBucket name: ArraySlice<UInt8>) -> String? {
    guard (3...63).contains(name.count) else { return "it has 3 to 63 characters" }
    let isLower = name.allSatisfy { byte in
      (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || LocationText.isDigit(byte)
        || ".-".utf8.contains(byte)
    }
    guard isLower else { return "it has only lower case letters, digits, '.' and '-'" }
    let ends = [name.first, name.last].compactMap { $0 }
    guard ends.allSatisfy({ !".-".utf8.contains($0) }) else {
      return "it begins and ends with a letter or a digit"
    }
    let parts = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    if parts.contains(where: \.isEmpty) { return "it has no two dots in sequence" }
    let isAddress = parts.count == 4 && parts.allSatisfy { $0.allSatisfy(LocationText.isDigit) }
    return isAddress ? "it is not an address" : nil
  }

  private static func prefix(
    _ bytes: ArraySlice<UInt8>, _ location: LocationText
  ) throws(OperationError) -> ByteString {
    if bytes.contains(UInt8(ascii: "?")) {
      throw location.refused(
        "it contains a '?'",
        hint: "\(form), with '--s3-region', '--s3-endpoint' and '--s3-profile' as options")
    }
    let prefix = try location.path(bytes, isAbsolute: false)
    // A key has at most 1024 bytes (AWS, "Creating object key names"), of which names of objects
    // need up to 200.
    if prefix.count > 800 || prefix.utf8 == nil {
      throw location.refused(
        "the prefix is not UTF-8 or has more than 800 bytes", hint: "choose a shorter prefix")
    }
    return prefix
  }
}

extension S3Location {
  /// Returns the reason why a text is not a valid endpoint, or nil if it is: `https://host:port` or
  /// `http://host:port` without user, path or query.
  package static func endpointFault(_ text: String) -> String? {
    let schemes = ["https://", "http://"]
    guard let scheme = schemes.first(where: { text.hasPrefix($0) }) else {
      return "it does not begin with 'https://' or 'http://'"
    }
    var host = text.utf8.dropFirst(scheme.utf8.count)
    if host.last == ByteString.slash { host = host.dropLast() }
    if host.contains(UInt8(ascii: "@")) { return "it contains a user or a key" }
    if host.contains(where: { "/?#".utf8.contains($0) }) { return "it contains more than a server" }
    let isPlain = host.allSatisfy { byte in
      LocationText.isLetter(byte) || LocationText.isDigit(byte) || "._-:[]".utf8.contains(byte)
    }
    guard isPlain, let first = host.first, first != UInt8(ascii: ":") else {
      return "it names no server"
    }
    return nil
  }
}
