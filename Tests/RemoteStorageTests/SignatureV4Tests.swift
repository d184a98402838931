import Codecs
import RemoteStorage
import SystemIO
import Testing

/// The examples of the Amazon S3 API Reference, "Signature Calculations for the Authorization
/// Header: Transferring Payload in a Single Chunk (AWS Signature Version 4)", with its key, secret
/// and date (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html).
struct SignatureV4Tests {
  private static let accessKey = "AKIAIOSFODNN7EXAMPLE"
  private static let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
  private static let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  /// Friday, 24 May 2013, 00:00:00 GMT.
  private static let time = Timestamp(seconds: 1_369_353_600)

  struct Example: Sendable {
    let name: String
    let method: String
    var path = "/"
    var query: [(name: String, value: String)] = []
    var headers: [(name: String, value: String)] = []
    var payload = SignatureV4Tests.nothing
    let canonical: String
    let names: String
    let signature: String
  }

  static let examples = [
    Example(
      name: "GET Object", method: "GET", path: "/test.txt", headers: [("Range", "bytes=0-9")],
      canonical: "7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc43964946972",
      names: "host;range;x-amz-content-sha256;x-amz-date",
      signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
    Example(
      name: "PUT Object", method: "PUT", path: "/test%24file.text",
      headers: [
        ("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
      ],
      payload: SignatureV4.hash("Welcome to Amazon S3.".utf8),
      canonical: "9e0e90d9c76de8fa5b200d8c849cd5b8dc7a3be3951ddb7f6a76b4158342019d",
      names: "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
      signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
    Example(
      name: "GET Bucket Lifecycle", method: "GET", query: [("lifecycle", "")],
      canonical: "9766c798316ff2757b517bc739a67f6213b4ab36dd5da2f94eaebf79c77395ca",
      names: "host;x-amz-content-sha256;x-amz-date",
      signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    Example(
      name: "GET Bucket (List Objects)", method: "GET",
      query: [("prefix", "J"), ("max-keys", "2")],
      canonical: "df57d21db20da04d7fa30298dd4488ba3a2b47ca3a489c74750e0f1e7df1b9b7",
      names: "host;x-amz-content-sha256;x-amz-date",
      signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
  ]

  @Test(arguments: examples.indices) func examplesOfAWSHaveTheirSignatures(index: Int) {
    let example = Self.examples[index]
    let signature = SignatureV4(region: "us-east-1", time: Self.time)
    #expect(signature.moment == "20130524T000000Z")
    let request = SignatureV4.Request(
      method: example.method, path: example.path, query: example.query,
      headers: example.headers + [
        ("Host", "examplebucket.s3.amazonaws.com"), ("x-amz-date", signature.moment),
        ("x-amz-content-sha256", example.payload),
      ], payload: example.payload)
    #expect(
      SignatureV4.hash(SignatureV4.canonicalRequest(request).utf8) == example.canonical,
      "\(example.name)")
    #expect(
      signature.stringToSign(for: request)
        == "AWS4-HMAC-SHA256\n20130524T000000Z\n20130524/us-east-1/s3/aws4_request\n"
        + example.canonical)
    let secret = SecretBytes(copying: Array(Self.secret.utf8).span)
    #expect(
      signature.authorization(for: request, accessKey: Self.accessKey, secret: secret)
        == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        + "SignedHeaders=\(example.names),Signature=\(example.signature)")
  }

  @Test func bytesOfPathsAndQueriesAreEncoded() {
    #expect(PercentEncoding.encode("a-Z_0.~/ +%\u{e9}".utf8) == "a-Z_0.~%2F%20%2B%25%C3%A9")
    #expect(PercentEncoding.encode("a b/c".utf8, keepsSlashes: true) == "a%20b/c")
    #expect(
      SignatureV4.query([("b", "2"), ("a", "x y"), ("a", "&=")]) == "a=%26%3D&a=x%20y&b=2")
  }

  @Test func encodedKeysOfListingsAreDecoded() {
    #expect(
      PercentEncoding.decode("a+b%2Bc%20%c3%A9".utf8, plusIsSpace: true)
        == Array("a b+c \u{e9}".utf8))
    #expect(PercentEncoding.decode("a+b%20".utf8) == Array("a+b ".utf8))
    for text in ["%", "%4", "%4g", "a%"] {
      #expect(PercentEncoding.decode(text.utf8) == nil, "\(text)")
    }
  }

  @Test func whiteSpaceInHeadersIsNormalized() {
    let request = SignatureV4.Request(
      method: "GET", path: "/", query: [], headers: [("B", "  a   b "), ("A", "1")], payload: "x")
    #expect(SignatureV4.canonicalRequest(request) == "GET\n/\n\na:1\nb:a b\n\na;b\nx")
  }
}
