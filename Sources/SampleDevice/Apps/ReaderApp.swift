internal import Codecs
internal import SandboxModel
internal import SystemIO

/// Reader: saved articles, large caches that grow every day, cookies and web data, a database with
/// several hundred rows, and a cache directory tag in a directory that is not a cache.
enum ReaderApp {
  private static let id = "org.example.reader"
  private static let caches = "Library/Caches/org.example.reader"

  static func bundle() throws(SampleError) -> ContainerPlan {
    let address = PropertyList.members([
      "CFBundleURLName": .string(id),
      "CFBundleURLSchemes": .array([.string("reader"), .string("feed")]),
    ])
    let app = BundlePlan(
      name: "Reader", identifier: id, version: "12.0", build: "4711",
      groups: [NotebookApp.groupID], info: [.init("CFBundleURLTypes", .array([address]))],
      day: -45)
    var bundle = try ContainerPlan(
      .bundle, "8D116ECE-1738-47D9-BD9C-172411E20B8F", of: id)
    bundle.add(try app.appEntries())
    return bundle
  }

  static func data(day: Int) throws(SampleError) -> ContainerPlan {
    var data = try ContainerPlan(
      .data, "90C192CF-D3AC-44AF-8F21-DDB66CAD4A26", of: id)
    data.add(documents())
    data.add(try library())
    data.add(webData())
    data.add(temporary())
    data.add(feeds(), day: -1)
    data.add(responses(day: day), day: day)
    addDays(to: &data, day: day)
    return data
  }

  private static func documents() -> [SampleEntry] {
    let articles: [SampleEntry] = (1...5).map { number in
      let title = SampleText.title("article \(number)")
      let body = SampleText.text("article \(number)", bytes: 4_000)
      return .text(
        ByteString("Documents/Saved/\(title).html"), "<h1>\(title)</h1>\n<p>\(body)</p>\n",
        day: -7 * number)
    }
    return articles + [
      .directory("Documents/Inbox"),
      .prose("Documents/Thesis/Chapter 1.md", bytes: 9_000, day: -18),
      .text("Documents/Thesis/CACHEDIR.TAG", SampleText.cacheTag, day: -18),
    ]
  }

  private static func library() throws(SampleError) -> [SampleEntry] {
    [
      try .binaryPlist(
        ByteString("Library/Preferences/\(id).plist"),
        .members([
          "feeds": .array([.string("https://example.org/feed"), .string("https://example.com/rss")]
          ),
          "refreshMinutes": .integer(30),
        ]), day: -6, permissions: 0o600),
      .noise(
        "Library/Application Support/Editions/2026-03-01.edition", bytes: 30_000, day: -1,
        marks: [.notToCloud]),
      .prose("Library/Logs/Reader.log", bytes: 6_000, day: -1),
      .noise("StoreKit/sandboxReceipt", bytes: 900, day: -45),
    ]
  }

  /// The data of web views: cookies with a leftover temporary file, website storage, caches.
  private static func webData() -> [SampleEntry] {
    let blobs: [SampleEntry] = (1...6).map { number in
      .noise(
        ByteString("Library/Caches/WebKit/NetworkCache/Version 16/Blobs/\(number)"),
        bytes: 9_000, day: -4 * number)
    }
    let site = "Library/WebKit/WebsiteData/LocalStorage/https_example.org_0"
    return blobs + [
      .file("Library/Cookies/Cookies.binarycookies", noCookies, day: -2),
      .noise("Library/Cookies/Cookies.binarycookies_tmp_4711_0.dat", bytes: 200, day: -33),
      .noise(ByteString("\(site).localstorage"), bytes: 3_000, day: -2),
    ]
  }

  /// An empty cookie file: "cook", one page of 12 bytes (head, no cookies, end), the sum of every
  /// fourth byte of the page, the footer.
  private static let noCookies: [UInt8] =
    Array("cook".utf8) + [0, 0, 0, 1, 0, 0, 0, 12]
    + [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0] + [0, 0, 0, 0, 0x07, 0x17, 0x20, 0x05]

  private static func temporary() -> [SampleEntry] {
    [
      .directory("SystemData"), .directory("tmp", permissions: 0o700),
      .noise("tmp/CFNetworkDownload_a1B2c3.tmp", bytes: 12_000, day: -1, permissions: 0o600),
      .noise("tmp/CFNetworkDownload_d4E5f6.tmp", bytes: 7_000, day: -40, permissions: 0o600),
      .directory("tmp/WebKit/MediaCache"),
    ]
  }

  /// Several hundred rows, so that the table's B-tree has an interior page.
  private static func feeds() -> ContainerPlan.Database {
    let rows = (1...420).map { number in
      SQLiteRow(
        Int64(number),
        [
          .null, .text(SampleText.title("headline \(number)")),
          .text("https://example.org/\(number)"), number % 3 == 0 ? .null : .integer(1),
        ])
    }
    return ContainerPlan.Database(
      path: "Library/Application Support/Feeds.sqlite", table: "articles",
      columns: "id INTEGER PRIMARY KEY, title TEXT, url TEXT, read INTEGER", rows: rows)
  }

  /// The database of cached responses, which grows every day.
  private static func responses(day: Int) -> ContainerPlan.Database {
    let rows = (1...(30 + 10 * day)).map { number in
      SQLiteRow(
        Int64(number),
        [.null, .text("https://example.org/\(number).png"), .real(Double(number) + 0.25)])
    }
    return ContainerPlan.Database(
      path: ByteString("\(caches)/Cache.db"), table: "responses",
      columns: "id INTEGER PRIMARY KEY, request TEXT, received REAL", rows: rows)
  }

  /// Twelve response bodies, and two more each day.
  private static func addDays(to data: inout ContainerPlan, day: Int) {
    for number in 1...(12 + 2 * ContainerPlan.lastDay) {
      let path = ByteString("\(caches)/fsCachedData/\(hexName(number))")
      let itsDay = number <= 12 ? -6 * number : (number - 11) / 2
      if itsDay <= day {
        data.add([.noise(path, bytes: 8_000 + 900 * (number % 7), day: itsDay)])
      } else {
        data.expect(path)
      }
    }
  }

  private static func hexName(_ number: Int) -> String {
    var random = SampleRandom("response \(number)")
    let digits = String(random.next(), radix: 16, uppercase: true)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
