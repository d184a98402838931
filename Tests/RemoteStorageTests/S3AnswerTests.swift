import ArchiveStore
import Codecs
import RemoteStorage
import SystemIO
import Testing

/// The XML answers of stores, including hostile ones.
struct S3AnswerTests {
  private func listing(_ text: String) throws(S3Failure.Words) -> S3Listing {
    try S3Listing(reading: Array(text.utf8))
  }

  /// An answer from Ceph, with the XML declaration and the namespace.
  private static let ceph = """
    <?xml version="1.0" encoding="UTF-8"?><ListBucketResult \
    xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix>a</Prefix>\
    <MaxKeys>2</MaxKeys><IsTruncated>true</IsTruncated>\
    <NextContinuationToken>a&amp;b</NextContinuationToken><EncodingType>url</EncodingType>\
    <Contents><Key>a%2Bb+c</Key><LastModified>2026-11-28T08:00:00.250Z</LastModified>\
    <ETag>&quot;d41d8cd98f00b204e9800998ecf8427e&quot;</ETag><Size>17</Size>\
    <StorageClass>STANDARD</StorageClass><Owner><ID>lab</ID></Owner><Type>Normal</Type></Contents>\
    <CommonPrefixes><Prefix>a%2Fd/</Prefix></CommonPrefixes></ListBucketResult>
    """

  @Test func pagesOfAListingAreRead() throws {
    let page = try listing(Self.ceph)
    #expect(page.next == "a&b")
    #expect(page.prefixes == ["a/d/"])
    let object = try #require(page.objects.first)
    #expect(object.key == "a+b c")
    #expect(object.size == 17)
    #expect(object.modified == Timestamp(rfc3339: "2026-11-28T08:00:00.25Z"))
    let plain = try listing(Self.ceph.replacing("<EncodingType>url</EncodingType>", with: ""))
    #expect(plain.objects.first?.key == "a%2Bb+c")
    let last = try listing(Self.ceph.replacing("<IsTruncated>true", with: "<IsTruncated>false"))
    #expect(last.next == nil)
  }

  @Test(arguments: [
    ("", "returned an invalid response to a listing"),
    ("<html></html>", "answers a listing with <html>"),
    ("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", "without a token"),
    ("<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>", "without a key"),
    (
      "<ListBucketResult><Contents><Key>k</Key><Size>-1</Size></Contents></ListBucketResult>",
      "without size and time"
    ),
    (
      "<ListBucketResult><EncodingType>url</EncodingType><CommonPrefixes><Prefix>%</Prefix>"
        + "</CommonPrefixes></ListBucketResult>", "not encoded"
    ),
    (
      "<ListBucketResult>"
        + String(
          repeating: "<Contents><Key>k</Key><Size>1</Size>"
            + "<LastModified>2026-11-28T08:00:00Z</LastModified></Contents>", count: 2)
        + "</ListBucketResult>", "lists 'k' twice"
    ),
    (
      "<ListBucketResult>"
        + String(repeating: "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>", count: 2)
        + "</ListBucketResult>", "lists 'p/' twice"
    ),
    ("<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult/>", "document type"),
  ]) func otherAnswersAreRefused(text: String, words: String) {
    let error = #expect(throws: S3Failure.Words.self) { try listing(text) }
    #expect(error?.text.contains(words) == true, "\(String(describing: error))")
  }

  @Test func removalsAreWrittenAndRead() throws {
    let body = try #require(S3Deletion.body(["a&<b>", "\u{e9}"]))
    let root = try XMLElement(reading: body)
    #expect(root.text(of: "Quiet") == "true")
    #expect(root.children("Object").map { $0.text(of: "Key") } == ["a&<b>", "\u{e9}"])
    #expect(S3Deletion.body([ByteString([0x01])]) == nil)
    #expect(S3Deletion.body([ByteString([0xff])]) == nil)
    let answer = """
      <DeleteResult><Deleted><Key>a</Key></Deleted><Error><Key>b</Key><Code>AccessDenied</Code>
      <Message>no</Message></Error><Error><Key>c</Key><Code>NoSuchKey</Code></Error></DeleteResult>
      """
    let problems = try S3Deletion.problems(reading: Array(answer.utf8))
    #expect(problems.map(\.key) == ["b"])
    #expect(problems.first?.code == "AccessDenied")
    #expect(try S3Deletion.problems(reading: []).isEmpty)
    #expect(throws: S3Failure.Words.self) {
      try S3Deletion.problems(reading: Array("<html/>".utf8))
    }
  }

  private func refusal(
    _ status: Int, _ body: String, _ headers: [(name: String, value: String)] = []
  ) -> S3Refusal {
    S3Refusal(
      HTTPResponse(status: status, headers: headers), body: Array(body.utf8),
      now: Timestamp(seconds: 1_000_000_000))
  }

  @Test func errorsAreReadAlsoWithoutABody() {
    let found = refusal(
      404,
      "<Error><Code>NoSuchBucket</Code><Message>a\u{1b}[31m\(String(repeating: "x", count: 999))"
        + "</Message></Error>")
    #expect(found.code == "NoSuchBucket")
    #expect(found.message.count < 250)
    #expect(!found.message.contains("\u{1b}"))
    #expect(refusal(404, "").code == "NoSuchKey")
    #expect(refusal(403, "").code == "AccessDenied")
    #expect(refusal(412, "").isExisting)
    #expect(refusal(503, "").isPassing)
    #expect(refusal(429, "").isPassing)
    #expect(!refusal(501, "").isPassing)
    #expect(!refusal(403, "<Error><Code>a b\n</Code></Error>").isPassing)
    #expect(refusal(403, "<Error><Code>a b\n</Code></Error>").code == "AccessDenied")
    #expect(refusal(400, "<Error><Code>BadDigest</Code></Error>").isPassing)
    #expect(refusal(503, "", [("retry-after", "7")]).wait == 7)
    #expect(refusal(503, "", [("retry-after", "99999999")]).wait == 60)
    #expect(
      refusal(400, "<ErrorResponse><Error><Code>X</Code></Error></ErrorResponse>").code == "X")
  }

  @Test func skewedClocksAreSeenAlsoWithoutABody() {
    // The local time is 2001-09-09T01:46:40Z.
    let date = [(name: "date", value: "Sun, 09 Sep 2001 02:06:40 GMT")]
    #expect(refusal(403, "", date).isSkewed)
    #expect(!refusal(404, "", date).isSkewed)
    #expect(!refusal(403, "", [("date", "Sun, 09 Sep 2001 01:50:00 GMT")]).isSkewed)
    let error = S3Failure(.refused(refusal(403, "", date), host: "store"))
      .storeError("read", "s3://bucket")
    #expect(
      error.reason == "the clock of this machine (2001-09-09T01:46:40Z) differs from that of the "
        + "store (2001-09-09T02:06:40Z) by 20 minutes")
    #expect(error.hint?.contains("NTP") == true)
  }

  @Test func timesOfHeadersAreRead() {
    #expect(HTTPDate.time("Sun, 06 Nov 1994 08:49:37 GMT")?.seconds == 784_111_777)
    for text in [
      "", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT",
      "Sun, 06 Nov 1994 25:00:00 GMT", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1 08:49 GMT",
    ] { #expect(HTTPDate.time(text) == nil, "\(text)") }
  }
}
