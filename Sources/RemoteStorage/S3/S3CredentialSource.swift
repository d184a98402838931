internal import ArchiveStore
internal import Codecs
internal import Synchronization
package import SystemIO

/// The credentials of a repository, read again before they expire and when the store refuses them.
///
/// The order is that of the AWS tools: a profile given for the repository, the variables
/// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, then the profile of the
/// environment. A profile has keys, or a command that prints them (`credential_process`).
package final class S3CredentialSource: Sendable {
  private let settings: S3Settings
  private let clock: @Sendable () -> Timestamp
  private let kept = Mutex<Kept?>(nil)

  /// Credentials, and the number of seconds before their expiration at which new ones are read.
  private struct Kept {
    let credentials: S3Credentials
    let lead: Int64
  }

  /// The time before the expiration at which new credentials are read, in seconds.
  private static let lead: Int64 = 300
  /// The maximum size of a command's output in bytes.
  private static let limit = 64 << 10

  /// Creates the source. Nothing is read yet.
  package init(
    _ settings: S3Settings, clock: @escaping @Sendable () -> Timestamp = { Host.now() }
  ) {
    self.settings = settings
    self.clock = clock
  }

  /// Returns credentials that do not expire soon. While they are read other threads wait.
  package func current() throws(S3Failure) -> S3Credentials {
    let now = clock()
    return try kept.withLock { kept throws(S3Failure) in
      if let kept, !kept.credentials.expires(within: kept.lead, of: now) { return kept.credentials }
      do throws(S3Failure) {
        let read = try read()
        kept = Kept(credentials: read, lead: Self.lead(of: read, at: now))
        return read
      } catch {
        // A single failure of the command does not end a backup whose credentials are valid.
        guard let kept, !kept.credentials.expires(within: 10, of: now) else { throw error }
        return kept.credentials
      }
    }
  }

  /// Returns the seconds before the expiration at which new credentials are read: at most half of
  /// their lifetime, because otherwise a command would run for each request.
  private static func lead(of credentials: S3Credentials, at now: Timestamp) -> Int64 {
    guard let expiration = credentials.expiration else { return lead }
    return min(lead, max(0, expiration.seconds - now.seconds) / 2)
  }

  /// Discards credentials that the store refused. New ones that were read in the meantime stay.
  package func discard(_ refused: S3Credentials) {
    kept.withLock { if $0?.credentials === refused { $0 = nil } }
  }

  private func read() throws(S3Failure) -> S3Credentials {
    if !settings.hasChosenProfile, let credentials = fromEnvironment() { return credentials }
    if let accessKey = try settings.setting("aws_access_key_id"),
      let secret = try settings.setting("aws_secret_access_key")
    {
      let token = try settings.setting("aws_session_token")
      return S3Credentials(accessKey: accessKey, secret: secret, token: token)
    }
    if let command = try settings.setting("credential_process") { return try run(command) }
    let hasProfile = try settings.hasProfile()
    throw S3Failure(.noCredentials(profile: settings.profile, exists: hasProfile))
  }

  private func fromEnvironment() -> S3Credentials? {
    guard let accessKey = settings.variable("AWS_ACCESS_KEY_ID"),
      let secret = settings.variable("AWS_SECRET_ACCESS_KEY")
    else { return nil }
    return S3Credentials(
      accessKey: accessKey, secret: secret, token: settings.variable("AWS_SESSION_TOKEN"))
  }

  /// Runs a command that prints credentials as JSON. Its output is never shown.
  ///
  /// Source: AWS SDKs and Tools Reference Guide, "Process credential provider".
  private func run(_ command: String) throws(S3Failure) -> S3Credentials {
    var output: [UInt8] = []
    defer { output.wipe() }
    let code: Int
    do {
      code = try ChildProgram.run(
        shell: ByteString(command), limit: Self.limit, writingTo: &output)
    } catch { throw S3Failure(.settings(error)) }
    guard code == 0 else { throw S3Failure(.command("it ended with exit status \(code)")) }
    let limits = JSON.Limits(bytes: Self.limit, depth: 8, values: 1000)
    guard let json = try? JSON(parsing: output, limits: limits) else {
      throw S3Failure(.command("it did not print one JSON object of at most 64 KiB"))
    }
    guard json["Version"]?.integer == 1 else {
      throw S3Failure(.command("the member 'Version' of its JSON is not 1"))
    }
    guard let accessKey = json["AccessKeyId"]?.string, !accessKey.isEmpty,
      let secret = json["SecretAccessKey"]?.string, !secret.isEmpty
    else {
      throw S3Failure(.command("its JSON has no 'AccessKeyId' and 'SecretAccessKey'"))
    }
    var expiration: Timestamp?
    if let text = json["Expiration"]?.string {
      guard let time = Timestamp(rfc3339: text) else {
        throw S3Failure(.command("the member 'Expiration' of its JSON is not a time"))
      }
      expiration = time
    }
    return S3Credentials(
      accessKey: accessKey, secret: secret, token: json["SessionToken"]?.string,
      expiration: expiration)
  }
}
