import Codecs
import SystemIO

@testable import RemoteStorage

extension Target {
  /// The answers of object stores, and the files with their credentials.
  static let storeTargets = [
    Target(name: "store-answer", run: storeAnswer),
    Target(name: "aws-profile", run: awsProfile),
    Target(name: "http-answer", run: httpAnswer),
  ]

  /// The body of an answer: a listing, the result of a removal, an error, and the elements of each.
  @Sendable private static func storeAnswer(_ bytes: [UInt8]) {
    if let page = try? S3Listing(reading: bytes) {
      require(page.objects.allSatisfy { !$0.key.isEmpty }, "an object without a key")
      require(page.next != "", "an empty token")
      require(page.objects.count + page.prefixes.count <= bytes.count, "more objects than bytes")
    }
    if let problems = try? S3Deletion.problems(reading: bytes) {
      require(problems.count <= bytes.count, "more problems than bytes")
    }
    let refusal = S3Refusal(
      HTTPResponse(status: 403), body: bytes, now: Timestamp(seconds: 1_000_000_000))
    require(refusal.code.utf8.count <= 64, "a code of \(refusal.code.utf8.count) bytes")
    let error = S3Failure(.refused(refusal, host: "store")).storeError("read", "object")
    require(!"\(error)".utf8.contains { $0 < 0x20 }, "a control character in '\(error)'")
    guard let root = try? XMLElement(reading: bytes) else { return }
    require(depth(root) <= XMLElement.Limits().depth, "too deep")
    if let escaped = XMLElement.escaped(root.text), !root.text.isEmpty {
      let again = try? XMLElement(reading: Array("<a>\(escaped)</a>".utf8))
      require(again?.text.utf8.elementsEqual(root.text.utf8) == true, "the text of \(root) changed")
    }
  }

  private static func depth(_ element: XMLElement) -> Int {
    1 + (element.children.map(depth).max() ?? 0)
  }

  /// A credentials or configuration file.
  @Sendable private static func awsProfile(_ bytes: [UInt8]) {
    let file = AWSProfileFile(bytes)
    let value = file.setting("aws_access_key_id", of: "default")
    require((value?.utf8.count ?? 0) <= 3 * bytes.count, "more text than bytes")
    require(value != "", "an empty setting")
  }

  /// The lines of a server's answer as libcurl passes them on, and its body after an empty line. No
  /// bytes beyond the limits may be kept, and an error must not contain control characters.
  @Sendable private static func httpAnswer(_ bytes: [UInt8]) {
    let limit = 4096
    let request = HTTPRequest(.get, url: "https://store/x", limit: limit)
    var buffer: [UInt8] = []
    let transfer = HTTPTransfer(request, HTTPConfiguration(), buffer: &buffer)
    var rest = bytes[...]
    while let end = rest.firstIndex(of: 0x0a), transfer.failure == nil {
      let line = Array(rest[...end])
      rest = rest[(end + 1)...]
      let count = line.withUnsafeBytes { transfer.receiveHeader($0) }
      require(count == line.count || transfer.failure != nil, "a header ends without a failure")
      // The final answer follows informational ones such as 100 (Continue).
      if line.allSatisfy({ $0 <= 0x20 }), transfer.response?.status ?? 0 >= 200 { break }
    }
    _ = HTTPDate.time(String(decoding: rest, as: UTF8.self))
    guard transfer.failure == nil, let response = transfer.response else { return }
    let body = Array(rest)
    let count = body.withUnsafeBytes { transfer.receive($0) }
    require(count == body.count || transfer.failure != nil, "a body ends without a failure")
    let received = transfer.takeBody()
    require(received.count <= (response.status >= 300 ? 64 << 10 : limit), "too large a body")
    require(response.headers.allSatisfy { $0.name == $0.name.lowercased() }, "a capital letter")
    let now = Timestamp(seconds: 1_000_000_000)
    let refusal = S3Refusal(response, body: received, now: now)
    require((0...60).contains(refusal.wait ?? 0), "a wait of \(refusal.wait ?? 0) s")
    let error = S3Failure(.refused(refusal, host: "store")).storeError("read", "object")
    require(!"\(error)".utf8.contains { $0 < 0x20 }, "a control character in '\(error)'")
  }
}

/// Answers of object stores, and a credentials file.
enum StoreSeeds {
  static let all: [(target: String, bytes: [UInt8])] =
    answers.map { ("store-answer", Array($0.utf8)) } + [("aws-profile", Array(profile.utf8))]
    + [("http-answer", Array(refusal.utf8)), ("http-answer", Array(success.utf8))]

  private static let refusal = """
    HTTP/1.1 100 Continue\r
    \r
    HTTP/1.1 503 Slow Down\r
    Date: Sun, 06 Nov 1994 08:49:37 GMT\r
    Retry-After: 3\r
    Location: https://other.example/bucket\r
    X-Amz-Bucket-Region: eu-central-1\r
    Content-Type: application/xml\r
    \r
    <Error><Code>SlowDown</Code><Message>later</Message></Error>
    """

  private static let success = "HTTP/2 200\r\nETag: \"0a\"\r\nx-amz-version-id: v1\r\n\r\nbytes"

  private static let answers = [
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name>\
    <Prefix>r/</Prefix><MaxKeys>1</MaxKeys><EncodingType>url</EncodingType>\
    <IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b</NextContinuationToken>\
    <Contents><Key>r/a%2Bb+c</Key><LastModified>2026-11-28T08:00:00.250Z</LastModified>\
    <ETag>&quot;d41d8cd98f00b204e9800998ecf8427e&quot;</ETag><Size>17</Size></Contents>\
    <CommonPrefixes><Prefix>r/d/</Prefix></CommonPrefixes></ListBucketResult>
    """,
    """
    <DeleteResult><Deleted><Key>a</Key></Deleted><Error><Key>b</Key><Code>AccessDenied</Code>\
    <Message><![CDATA[no]]></Message></Error></DeleteResult>
    """,
    """
    <Error><Code>RequestTimeTooSkewed</Code><Message></Message><RequestId>tx0</RequestId>\
    <ServerTime>2026-11-28T08:00:00Z</ServerTime><Region>eu-central-1</Region></Error>
    """,
    """
    <InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>2~x</UploadId>\
    </InitiateMultipartUploadResult>
    """,
    "<!DOCTYPE html><html><body>It works!</body></html>",
  ]

  private static let profile = """
    # keys
    [default]
    aws_access_key_id = A ; comment
    aws_secret_access_key=b/c=
      nested = x
    [profile job]
    credential_process = printf '{}'
    """
}
