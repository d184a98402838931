import ArchiveStore
import Foundation
import RemoteStorage
import SystemIO
import TestSupport
import Testing

/// The errors shown to the user if the endpoint, the bucket or the credentials are wrong.
struct S3ErrorTests {
  private static let secrets = ["ACCESSKEYID", "TOPSECRETKEY", "SESSIONTOKEN"]

  private func options() -> S3Storage.Options {
    var options = testOptions([
      "AWS_ACCESS_KEY_ID": Self.secrets[0], "AWS_SECRET_ACCESS_KEY": Self.secrets[1],
      "AWS_SESSION_TOKEN": Self.secrets[2],
    ])
    options.retries.attempts = 2
    options.retries.firstAttempts = 2
    options.http.connectTimeout = 2
    return options
  }

  /// Returns the error of reading an object, and checks the properties that every error must have.
  private func error(
    _ rule: String,
    _ body: (S3Storage) throws -> Void = { _ = try $0.load(objectPath("a"), limit: 9) }
  ) throws -> StoreError {
    let server = try StoreServer("[{\(rule), \"times\": 0}]")
    let storage = try testStorage(server.endpoint, options())
    let found = try #require(failure { try body(storage) })
    let text = "\(found) \(found.hint ?? "") \(storage)"
    for secret in Self.secrets { #expect(!text.contains(secret), "\(text)") }
    #expect(!text.contains("AWS4-HMAC"), "\(text)")
    #expect(!text.contains("\n"), "\(text)")
    return found
  }

  private func xml(_ code: String, _ more: String = "") -> String {
    #""body": "<?xml version='1.0'?><Error><Code>\#(code)</Code>\#(more)</Error>""#
  }

  @Test func wrongSecretIsNamed() throws {
    let echoed =
      "<Message>m</Message><AWSAccessKeyId>ACCESSKEYID</AWSAccessKeyId><StringToSign>"
      + "AWS4-HMAC-SHA256 SESSIONTOKEN</StringToSign>"
    let found = try error(#""status": 403, "# + xml("SignatureDoesNotMatch", echoed))
    #expect(found.reason == "the store refuses the signature: the secret access key is wrong")
    #expect(found.hint?.contains("AWS_SECRET_ACCESS_KEY") == true)
    #expect(found.subject == "s3://bucket/some/place")
    #expect(found.action == "read 'a' in the repository")
    #expect(found.kind == .failed)
    let unknown = try error(#""status": 403, "# + xml("InvalidAccessKeyId"))
    #expect(unknown.reason == "the store does not know the access key ID")
  }

  /// Without this check, an object that a proxy has compressed would look damaged.
  @Test func compressedAnswersAreNotDamage() throws {
    let found = try error(
      #""status": 200, "headers": {"Content-Encoding": "gzip"}, "body": "abc""#)
    #expect(found.reason.contains("compresses its responses (gzip)"), "\(found)")
    #expect(found.kind == .failed && found.subject == "s3://bucket/some/place")
  }

  @Test func missingBucketIsNamed() throws {
    let found = try error(#""status": 404, "# + xml("NoSuchBucket"))
    #expect(found.code == .noRepository)
    #expect(found.description.hasPrefix("cannot find the bucket 'bucket': '127.0.0.1:"))
    #expect(found.hint?.contains("create the bucket") == true)
    #expect(try error(#""status": 404"#).code == .missing)
  }

  @Test func deniedRequestsHaveTheirCode() throws {
    let found = try error(#""status": 403, "# + xml("AccessDenied", "<Message>by policy</Message>"))
    #expect(found.errorCode == .permissionDenied)
    #expect(found.subject == "a")
    #expect(found.reason == #"the store denies access: "by policy""#)
    let removal = try error(#""status": 403"#) { try $0.remove(objectPath("a")) }
    #expect(removal.description.hasPrefix("cannot remove 'a': the store denies access"))
    let put = try error(#""status": 403"#) { try $0.touch(objectPath("a")) }
    #expect(put.cause?.isRefused == true)
    let list = try error(#""status": 403"#) { _ = try $0.list(.root) }
    #expect(list.errorCode == .permissionDenied)
  }

  @Test func clocksAreCompared() throws {
    let old = HTTPDateText.text(secondsAgo: 1200)
    for rule in [
      #""status": 403, "headers": {"Date": "\#(old)"}"#,
      #""status": 403, "headers": {"Date": "\#(old)"}, "# + xml("RequestTimeTooSkewed"),
    ] {
      let found = try error(rule)
      #expect(found.reason.hasPrefix("the clock of this machine ("), "\(found)")
      #expect(found.reason.hasSuffix(") by 20 minutes"), "\(found)")
      #expect(found.subject == "s3://bucket/some/place")
    }
  }

  @Test func webPagesAreNotAStore() throws {
    let page =
      #""headers": {"Content-Type": "text/html"}, "body": "<!DOCTYPE html><html>hi</html>""#
    for body in [
      { _ = try $0.list(.root) }, { try $0.touch(objectPath("a")) },
      { _ = try $0.create([1], as: objectPath("a")) },
    ] as [(S3Storage) throws -> Void] {
      let found = try error(#""status": 200, "# + page, body)
      #expect(
        found.reason.contains("returned a web page instead of an S3 response")
          || found.reason.contains("does not confirm that an object is stored")
          || found.code == .unsupported, "\(found)")
    }
    for status in [404, 403, 502] {
      let found = try error("\"status\": \(status), " + page)
      #expect(
        found.reason.contains("returned a web page (status \(status)) instead of an S3 response"),
        "\(found)")
      #expect(found.hint?.contains("endpoint") == true)
    }
    let json = try error(#""status": 200, "body": "{}""#) { _ = try $0.list(.root) }
    #expect(json.reason.contains("returned an invalid response to a listing"))
  }

  @Test func redirectsNameTheRegion() throws {
    let moved = #""status": 301, "headers": {"x-amz-bucket-region": "eu-central-1"}, "#
    let region = try error(moved + xml("PermanentRedirect"))
    #expect(region.reason == "the bucket is in the region 'eu-central-1'")
    let malformed = try error(
      #""status": 400, "# + xml("AuthorizationHeaderMalformed", "<Region>us-west-2</Region>"))
    #expect(malformed.hint == "set the region to 'us-west-2'")
    let other = try error(#""status": 307, "headers": {"Location": "https://other.example/x"}"#)
    #expect(
      other.reason.hasSuffix(
        "redirects the request to 'other.example', which is not followed: credentials are for one host"
      ), "\(other)")
  }

  @Test func otherErrorsHaveCodeAndMessage() throws {
    let found = try error(#""status": 409, "# + xml("Strange", "<Message>a\\u001b[1mb</Message>"))
    #expect(found.reason.hasSuffix(#"answered with Strange (status 409): "a\x1b[1mb""#), "\(found)")
    let full = try error(#""status": 403, "# + xml("QuotaExceeded")) {
      try $0.touch(objectPath("a"))
    }
    #expect(full.errorCode == .quotaExceeded)
    #expect(try error(#""status": 501"#).code == .unsupported)
    let range = try error(#""status": 200, "body": "123456789""#) {
      _ = try $0.load(objectPath("a"), offset: 3, count: 9)
    }
    #expect(range.reason.hasSuffix("ignores ranges"))
  }

  /// If a server returns other bytes of an object than requested, the object is not damaged.
  @Test(arguments: [
    (#""status": 200, "body": "123456789""#, UInt64(0)),
    (#""status": 200, "body": "123456789""#, 3),
    (#""status": 206, "body": "123456789""#, 3),
    (#""status": 206, "body": "12", "headers": {"Content-Range": "bytes 0-1/9"}"#, 3),
  ]) func serversThatIgnoreRangesAreNotDamage(answer: String, offset: UInt64) throws {
    let found = try error(answer) {
      _ = try $0.load(objectPath("a"), offset: offset, count: 2)
    }
    #expect(found.reason.hasSuffix("ignores ranges"), "\(found)")
    #expect(found.kind == .failed && found.hint?.contains("endpoint") == true)
  }

  @Test func unreachableEndpointsAreNamed() throws {
    for url in ["http://127.0.0.1:1", "https://127.0.0.1:1", "http://no-such-host.invalid"] {
      let storage = try testStorage(url, options())
      let found = try #require(failure { _ = try storage.list(.root) })
      let host = url.split(separator: "/")[1]
      #expect(found.reason.hasPrefix("no response from '\(host)': "), "\(found)")
      #expect(found.reason.hasSuffix("(after 2 attempts)"))
      #expect(found.kind == .failed)
      #expect(found.hint?.contains("network") == true)
    }
    let bad = failure { _ = try testStorage("store.example", options()) }
    #expect(bad?.description.hasPrefix("cannot use the endpoint 'store.example'") == true)
    let secret = failure { _ = try testStorage("http://user:word@store.example", options()) }
    #expect(secret?.description.hasPrefix("cannot use the endpoint '...@store.example'") == true)
  }

  @Test func missingCredentialsAreReportedAtTheFirstRequest() throws {
    let storage = try testStorage("http://127.0.0.1:1", testOptions([:]))
    let found = failure { _ = try storage.list(.root) }
    #expect(found?.reason == "there are no credentials for the store")
    #expect(found?.subject == "s3://bucket/some/place")
  }
}

/// Times in the form used in headers.
private enum HTTPDateText {
  static func text(secondsAgo: Double) -> String {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(identifier: "GMT")
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return formatter.string(from: Date(timeIntervalSinceNow: -secondsAgo))
  }
}
