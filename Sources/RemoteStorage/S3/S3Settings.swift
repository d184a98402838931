package import SystemIO

/// The environment variables and files of the AWS tools, read when they are needed.
///
/// Source: AWS SDKs and Tools Reference Guide, "Environment variables list", "Location of the
/// shared config and credentials files" and "Service-specific endpoints".
package struct S3Settings: Sendable {
  private let environment: @Sendable (String) -> ByteString?
  /// The profile of the location, or nil for that of the environment.
  private let chosenProfile: String?

  /// Creates the settings.
  ///
  /// - Parameters:
  ///   - profile: The profile given for the repository, whose credentials precede those of the
  ///     environment (default: `AWS_PROFILE`, then `default`).
  ///   - environment: Returns the value of a variable, or nil if it is unset or empty.
  package init(
    profile: String? = nil,
    environment: @escaping @Sendable (String) -> ByteString? = { Host.environment($0) }
  ) {
    chosenProfile = profile
    self.environment = environment
  }

  /// Whether the profile was given for this repository.
  var hasChosenProfile: Bool { chosenProfile != nil }

  /// The name of the profile.
  var profile: String { chosenProfile ?? variable("AWS_PROFILE") ?? "default" }

  /// Returns the value of a variable that is text.
  func variable(_ name: String) -> String? { environment(name)?.utf8 }

  /// The region of the environment or the profile; if there is none, AWS's first one, a name that
  /// other stores accept, too.
  package func region() throws(S3Failure) -> String {
    for name in ["AWS_REGION", "AWS_DEFAULT_REGION"] {
      if let region = variable(name) { return region }
    }
    return try setting("region") ?? "us-east-1"
  }

  /// The endpoint of the environment or the profile, or nil for AWS's own.
  package func endpoint() throws(S3Failure) -> String? {
    for name in ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"] {
      if let url = variable(name) { return url }
    }
    return try setting("endpoint_url")
  }

  /// Returns the region of a location, or that of the environment or the profile.
  func region(of location: S3Location) throws(S3Failure) -> String {
    if let region = location.region { return region }
    return try region()
  }

  /// Returns the endpoint of a location, or that of the environment or the profile.
  func endpoint(of location: S3Location) throws(S3Failure) -> String? {
    if let endpoint = location.endpoint { return endpoint }
    return try endpoint()
  }

  /// The file of trusted certificates of the environment or the profile, or nil for the system's.
  package func authorities() throws(S3Failure) -> ByteString? {
    if let path = environment("AWS_CA_BUNDLE") { return path }
    return try setting("ca_bundle").map { ByteString($0) }
  }

  /// Returns a setting of the profile: that of the credentials file precedes that of the
  /// configuration file.
  func setting(_ key: String) throws(S3Failure) -> String? {
    for file in try files() {
      if let value = file.setting(key, of: profile) { return value }
    }
    return nil
  }

  /// Whether a file has the profile.
  func hasProfile() throws(S3Failure) -> Bool {
    for file in try files() where file.has(profile) { return true }
    return false
  }

  /// The credentials file and the configuration file, as far as they exist.
  private func files() throws(S3Failure) -> [AWSProfileFile] {
    var found: [AWSProfileFile] = []
    let names: [(String, ByteString)] = [
      ("AWS_SHARED_CREDENTIALS_FILE", "credentials"), ("AWS_CONFIG_FILE", "config"),
    ]
    for (variable, name) in names {
      guard let path = path(variable, name), let file = try Self.read(path) else { continue }
      found.append(file)
    }
    return found
  }

  private func path(_ variable: String, _ name: ByteString) -> ByteString? {
    let home = environment("HOME")
    guard let named = environment(variable) else { return home?.appending(".aws").appending(name) }
    let components = named.components
    guard components.first == "~", let home else { return named }
    return home.appending(ByteString(joining: components.dropFirst()))
  }

  private static func read(_ path: ByteString) throws(S3Failure) -> AWSProfileFile? {
    do throws(SystemError) {
      guard let bytes = try Descriptor.open(path: path).readAll(limit: AWSProfileFile.limit) else {
        throw SystemError.tooLarge(path, to: .read)
      }
      return AWSProfileFile(bytes)
    } catch {
      if error.isMissing { return nil }
      throw S3Failure(.settings(error))
    }
  }
}

extension S3Location {
  /// The host and port of the bucket's server, for comparison with another one. All servers of an
  /// AWS partition, in which bucket names are unique, count as one. Nil if unknown.
  ///
  /// Source: AWS Fault Isolation Boundaries, "Partitions".
  package var server: String? {
    do throws(S3Failure) {
      let settings = S3Settings(profile: profile)
      let endpoint = try S3Endpoint(
        bucket: bucket, region: settings.region(of: self), url: settings.endpoint(of: self),
        isPathStyle: true)
      let labels = endpoint.host.split(separator: ".")
      if labels.suffix(3) == ["amazonaws", "com", "cn"] { return "amazonaws.com.cn" }
      guard labels.suffix(2) == ["amazonaws", "com"] else { return endpoint.host }
      let isOfGovernment = labels.contains { $0.hasPrefix("us-gov-") }
      return isOfGovernment ? "us-gov.amazonaws.com" : "amazonaws.com"
    } catch { return nil }
  }
}
