import ArchiveStore
import RemoteStorage
import SystemIO
import Testing

/// The URLs of buckets, and the pauses between attempts.
struct S3EndpointTests {
  private func url(
    _ bucket: String, _ server: String? = nil, _ isPathStyle: Bool? = nil,
    region: String = "eu-west-1"
  ) throws -> String {
    let endpoint = try S3Endpoint(
      bucket: bucket, region: region, url: server, isPathStyle: isPathStyle)
    return endpoint.url(endpoint.path("a b/\u{e9}"), query: "")
  }

  @Test func bucketsAreInTheHostOrInThePath() throws {
    let end = "/a%20b/%C3%A9"
    #expect(try url("photos") == "https://photos.s3.eu-west-1.amazonaws.com" + end)
    #expect(
      try url("photos", region: "cn-north-1")
        == "https://photos.s3.cn-north-1.amazonaws.com.cn" + end)
    #expect(try url("photos", nil, true) == "https://s3.eu-west-1.amazonaws.com/photos" + end)
    // The certificate of AWS does not match names with a dot.
    #expect(try url("my.photos") == "https://s3.eu-west-1.amazonaws.com/my.photos" + end)
    #expect(try url("photos", "https://Store.example/") == "https://store.example/photos" + end)
    #expect(
      try url("photos", "https://store.example", false) == "https://photos.store.example" + end)
    #expect(
      try url("photos", "http://127.0.0.1:9000", false) == "http://127.0.0.1:9000/photos" + end)
    #expect(try url("photos", "http://[::1]:9000") == "http://[::1]:9000/photos" + end)
    #expect(try url("my_Photos", "https://s", false) == "https://s/my_Photos" + end)
    #expect(try url("photos", "https://s:443") == "https://s/photos" + end)
    #expect(try url("photos", "http://s:443") == "http://s:443/photos" + end)
  }

  @Test func listingsGoToTheBucket() throws {
    let inPath = try S3Endpoint(bucket: "b-1", region: "x", url: "http://s")
    #expect(inPath.url(inPath.path(""), query: "list-type=2") == "http://s/b-1?list-type=2")
    let inHost = try S3Endpoint(bucket: "b-1", region: "x")
    #expect(
      inHost.url(inHost.path(""), query: "q=") == "https://b-1.s3.x.amazonaws.com/?q=")
    #expect(inHost.host == "b-1.s3.x.amazonaws.com")
  }

  @Test(arguments: [
    "store.example", "ftp://s", "https://", "https://s/path", "https://user:pw@s", "https://s:0",
    "https://s:x", "https://s?x", "https://s\n", "https://a b", "https://s:99999",
  ])
  func otherURLsAreRefused(text: String) throws {
    do {
      _ = try S3Endpoint(bucket: "bucket", region: "x", url: text)
      Issue.record("'\(text)' is accepted")
    } catch {
      let found = error.storeError("open the repository", "s3://bucket")
      #expect(found.code == .invalid)
      #expect(found.description.hasPrefix("cannot use the endpoint '"))
      #expect(!found.description.contains("\n"))
    }
  }

  @Test func pausesGrowAndAreBounded() {
    var policy = RetryPolicy()
    (policy.base, policy.maximum) = (1, 10)
    #expect((1...6).map { policy.pause(after: $0, jitter: 1) } == [1, 2, 4, 8, 10, 10])
    #expect(policy.pause(after: 3, jitter: 0) == 2)
    #expect(policy.pause(after: 1_000_000, jitter: 0.5) == 7.5)
  }

  /// Two buckets of the same name in different partitions of AWS are different buckets.
  @Test func serversOfAPartitionAreOne() {
    func server(_ endpoint: String, region: String = "eu-west-1") -> String? {
      S3Location(bucket: "bucket", prefix: "", endpoint: endpoint, region: region).server
    }
    let amazon = server("https://s3.amazonaws.com")
    #expect(amazon == "amazonaws.com")
    #expect(server("https://s3.dualstack.eu-west-1.amazonaws.com/") == amazon)
    #expect(server("https://s3.cn-north-1.amazonaws.com.cn") == "amazonaws.com.cn")
    #expect(server("https://s3.us-gov-west-1.amazonaws.com") == "us-gov.amazonaws.com")
    #expect(server("https://HOST:443") == "host" && server("https://host:9000/") == "host:9000")
    #expect(server("https://amazonaws.com.example") == "amazonaws.com.example")
  }
}
