import ArchiveStore
import Codecs
import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import RemoteStorage

/// Credentials from the environment, from the AWS files, and from commands.
struct S3CredentialTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory("credentials") }

  private func settings(
    _ variables: [String: String] = [:], profile: String? = nil
  ) -> S3Settings {
    let all = ["HOME": directory.string].merging(variables) { $1 }
    return S3Settings(profile: profile) { all[$0].map { ByteString($0) } }
  }

  private func source(
    _ variables: [String: String] = [:], profile: String? = nil,
    clock: @escaping @Sendable () -> Timestamp = { Host.now() }
  ) -> S3CredentialSource {
    S3CredentialSource(settings(variables, profile: profile), clock: clock)
  }

  private func secret(_ credentials: S3Credentials) -> String {
    credentials.secret.withBytes { bytes in
      String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self)
    }
  }

  private func error(_ source: S3CredentialSource) -> StoreError? {
    do {
      _ = try source.current()
      return nil
    } catch { return error.storeError("open the repository", "s3://bucket") }
  }

  private static let files = """
    # keys
    [default]
    aws_access_key_id = DEFAULT
    aws_secret_access_key=default/secret=  ; comment
    [ other ]
    aws_access_key_id: WRONG
    aws_access_key_id = OTHER
      aws_access_key_id = NESTED
    AWS_SECRET_ACCESS_KEY = other-secret
    aws_session_token = other-token
    """

  @Test func variablesPrecedeTheProfileOfTheEnvironment() throws {
    try directory.write(Self.files, at: ".aws/credentials")
    let variables = [
      "AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "env-secret",
      "AWS_SESSION_TOKEN": "env-token", "AWS_PROFILE": "other",
    ]
    let found = try source(variables).current()
    #expect(found.accessKey == "ENV")
    #expect(secret(found) == "env-secret")
    #expect(found.token == "env-token")
    let chosen = try source(variables, profile: "default").current()
    #expect(chosen.accessKey == "DEFAULT")
    #expect(secret(chosen) == "default/secret=")
    #expect(chosen.token == nil)
  }

  @Test func profilesAreReadFromTheFiles() throws {
    try directory.write(Self.files, at: "elsewhere")
    try directory.write(
      "[profile other]\nregion = eu-central-1\nendpoint_url=https://store.example\n", at: "config")
    let variables = [
      "AWS_SHARED_CREDENTIALS_FILE": "~/elsewhere", "AWS_PROFILE": "other",
      "AWS_CONFIG_FILE": directory.string + "/config",
    ]
    let found = try source(variables).current()
    #expect(found.accessKey == "OTHER")
    #expect(secret(found) == "other-secret")
    #expect(found.token == "other-token")
    #expect(try settings(variables).region() == "eu-central-1")
    #expect(try settings(variables).endpoint() == "https://store.example")
    let named = variables.merging(["AWS_REGION": "x", "AWS_ENDPOINT_URL_S3": "http://y"]) { $1 }
    #expect(try settings(named).region() == "x")
    #expect(try settings(named).endpoint() == "http://y")
    #expect(try settings().region() == "us-east-1")
    #expect(try settings().endpoint() == nil)
  }

  @Test func missingCredentialsAreExplained() throws {
    let none = error(source())
    #expect(none?.reason == "there are no credentials for the store")
    #expect(none?.hint?.contains("AWS_ACCESS_KEY_ID") == true)
    try directory.write("[half]\naws_access_key_id = A\n", at: ".aws/credentials")
    #expect(error(source(profile: "half"))?.reason == "the profile 'half' has no credentials")
    try directory.write("", at: ".aws/credentials")
    #expect(error(source(profile: "half"))?.reason.contains("there is no profile 'half'") == true)
  }

  @Test func hostileFilesAreBounded() throws {
    let line = Array(repeating: UInt8(ascii: "["), count: 3000)
    #expect(!AWSProfileFile(line).has("["))
    for text in ["[", "=", "[a", "]=[", "[]\n=\n", "\u{0}=\u{0}", "[a]\n=x\n[b\nk=v"] {
      _ = AWSProfileFile(Array(text.utf8))
    }
    #expect(AWSProfileFile(Array("[a]\nk=v\n[b\nk=w".utf8)).setting("k", of: "a") == "v")
    try directory.write([UInt8](repeating: 0x20, count: 2 << 20), at: ".aws/credentials")
    #expect(error(source())?.reason.contains("large") == true)
    #expect(error(source())?.subject.hasSuffix(".aws/credentials") == true)
  }

  // MARK: - Commands

  private func writeCommand(_ script: String) throws {
    try directory.write("[profile job]\ncredential_process = \(script)\n", at: ".aws/config")
  }

  private func json(_ secret: String, _ expiration: String = "2026-11-28T12:00:00Z") -> String {
    """
    printf '{"Version":1,"AccessKeyId":"C","SecretAccessKey":"\(secret)","SessionToken":"t",\
    "Expiration":"\(expiration)"}'
    """
  }

  /// Keys that are valid for a short time only are used for half of it.
  @Test func shortLivedKeysAreUsedSeveralTimes() throws {
    let calls = directory.string + "/calls"
    try writeCommand("echo x >> '\(calls)'; " + json("s1"))
    let now = Mutex(try #require(Timestamp(rfc3339: "2026-11-28T11:56:40Z")))
    let source = source(profile: "job") { now.withLock { $0 } }
    for _ in 0..<4 {
      #expect(secret(try source.current()) == "s1")
      now.withLock { $0.seconds += 30 }
    }
    #expect(try directory.read("calls").count == 2)
    // 80 seconds before the keys expire.
    _ = try source.current()
    #expect(try directory.read("calls").count == 4)
  }

  @Test func commandsAreAskedAgainBeforeTheirKeysExpire() throws {
    let calls = directory.string + "/calls"
    try writeCommand("echo x >> '\(calls)'; " + json("s1"))
    let now = Mutex(try #require(Timestamp(rfc3339: "2026-11-28T11:00:00Z")))
    let source = source(profile: "job") { now.withLock { $0 } }
    for _ in 0..<3 { #expect(secret(try source.current()) == "s1") }
    #expect(try directory.read("calls").count == 2)
    #expect(try source.current().token == "t")
    // Four minutes before the keys expire.
    now.withLock { $0.seconds += 56 * 60 }
    try writeCommand("echo x >> '\(calls)'; " + json("s2", "2026-11-28T14:00:00Z"))
    #expect(secret(try source.current()) == "s2")
    #expect(try directory.read("calls").count == 4)
    // After the store has refused the keys.
    source.discard(try source.current())
    _ = try source.current()
    #expect(try directory.read("calls").count == 6)
  }

  @Test func failingCommandIsNotAnErrorWhileTheKeysAreValid() throws {
    try writeCommand(json("s1"))
    let now = Mutex(try #require(Timestamp(rfc3339: "2026-11-28T11:58:00Z")))
    let source = source(profile: "job") { now.withLock { $0 } }
    _ = try source.current()
    try writeCommand("exit 3")
    #expect(secret(try source.current()) == "s1")
    now.withLock { $0.seconds += 120 }
    #expect(
      error(source)?.reason == "the command for credentials failed: it ended with exit status 3")
  }

  @Test(arguments: [
    "printf SECRET-OUTPUT", "printf '{\"Version\":2,\"SecretAccessKey\":\"SECRET-OUTPUT\"}'",
    "printf '{\"Version\":1,\"SecretAccessKey\":\"SECRET-OUTPUT\"}'",
    "printf '{\"Version\":1,\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"SECRET-OUTPUT\","
      + "\"Expiration\":\"soon\"}'", "yes SECRET-OUTPUT | head -c 200000", "true",
  ])
  func outputOfCommandsIsNeverShown(script: String) throws {
    try writeCommand(script)
    let found = try #require(error(source(profile: "job")))
    #expect(found.reason.hasPrefix("the command for credentials failed: "))
    #expect(!"\(found) \(found.hint ?? "")".contains("OUTPUT"))
  }

  @Test func descriptionsHaveNoSecrets() {
    let credentials = S3Credentials(accessKey: "PUBLIC", secret: "HIDDEN", token: "TOKEN")
    var dumped = ""
    dump(credentials, to: &dumped)
    dump([Optional(credentials)], to: &dumped)
    for text in ["\(credentials)", String(reflecting: credentials), "\([credentials])", dumped] {
      for secret in ["PUBLIC", "HIDDEN", "TOKEN"] { #expect(!text.contains(secret), "\(text)") }
    }
  }
}
