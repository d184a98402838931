package import SystemIO

/// The settings of a connection to a repository, apart from its location.
package struct ConnectionSettings: Hashable, Sendable {
  /// The number of concurrent transfers. With fewer than five, a restore over 20 ms waits for a
  /// third of its time; more gain nothing. restic uses five as well.
  package var connections = 5
  /// The maximum number of bytes to send per second; nil for no limit.
  package var uploadRate: UInt64?
  /// The maximum number of bytes to receive per second; nil for no limit.
  package var downloadRate: UInt64?
  /// The words of the command that connects to an SFTP server.
  package var sshCommand: [ByteString] = ["ssh"]
  /// The URL of the server of a bucket; nil for AWS's own.
  package var s3Endpoint: String?
  /// The region of a bucket; nil for that of the environment or the profile.
  package var s3Region: String?
  /// The profile in the user's AWS files; nil for that of the environment or the default.
  package var s3Profile: String?
  /// Whether the bucket is in the path and not in the host; nil for the choice that suits the
  /// endpoint.
  package var s3PathStyle: Bool?

  /// Creates settings with the defaults.
  package init() {}

  /// Returns a location with the settings that are not part of its text.
  package func completing(_ location: RepositoryLocation) -> RepositoryLocation {
    guard case .s3(var bucket) = location else { return location }
    bucket.endpoint = s3Endpoint
    bucket.region = s3Region
    bucket.profile = s3Profile
    bucket.pathStyle = s3PathStyle
    return .s3(bucket)
  }
}
