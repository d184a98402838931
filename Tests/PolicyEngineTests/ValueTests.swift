import Testing

@testable import PolicyEngine

struct ValueTests {
  @Test(arguments: [
    ("5.0.1", "5.1", true), ("5", "5.0.0", false), ("5.0.0", "5", false), ("9.3", "10.2", true),
    ("10.2", "9.3", false), ("5.0", "5.0.1", true), ("0", "0.1", true),
  ])
  func versionsCompareByNumbers(low: String, high: String, isLess: Bool) throws {
    let comparison = try #require(OSVersion(low)) < #require(OSVersion(high))
    #expect(comparison == isLess)
  }

  @Test func missingVersionNumbersAreZero() {
    #expect(OSVersion("5") == OSVersion("5.0.0"))
    #expect(OSVersion("5.0") != OSVersion("5.0.1"))
  }

  @Test(arguments: [
    "", "5.", ".5", "5..1", "v5", "5.x", "-1", "+5", "5 ", "99999999999", "1.2.3.4.5.6.7.8.9",
  ])
  func invalidVersionsAreRefused(text: String) { #expect(OSVersion(text) == nil) }

  @Test(arguments: [
    (">=5.0.1", "5.0.1", true), (">=5.0.1", "5.0", false), (">=5.1", "12", true),
    ("5.0.1..<6", "5.0.1", true), ("5.0.1..<6", "6.0", false), ("5.0.1..<6", "5.9.9", true),
    ("5...6", "6", true), ("5...6", "6.0.1", false), ("<6", "5.9", true), ("<6", "6", false),
    ("<=6", "6.0", true), (">6", "6", false), (">6", "6.0.1", true), ("7", "7.0", true),
    ("7", "7.1", false), (">= 5.1", "5.1", true),
  ])
  func rangesContainVersions(range: String, version: String, isHeld: Bool) throws {
    let version = try #require(OSVersion(version))
    #expect(try #require(OSVersion.Range(range)).contains(version) == isHeld)
  }

  @Test func anUnknownVersionIsTheNewest() throws {
    #expect(try #require(OSVersion.Range(">=99")).contains(nil))
    #expect(try !#require(OSVersion.Range("5.0.1..<6")).contains(nil))
    #expect(try !#require(OSVersion.Range("<=6")).contains(nil))
    #expect(OSVersion.Range.all.contains(nil))
  }

  @Test(arguments: ["", ">=", "5..6", "6..<5", "5..<5", ">=x", "=5", "5-6"])
  func invalidRangesAreRefused(text: String) { #expect(OSVersion.Range(text) == nil) }

  @Test(arguments: [
    (">=5", ">=5.1", true), (">=5.1", ">=5", false), (">=5", ">5", true), (">5", ">=5", false),
    ("<6", "5...6", false), ("<=6", "5...6", true), ("5..<7", "6", true), ("6", ">=6", false),
  ])
  func rangesCoverRanges(outer: String, inner: String, covers: Bool) throws {
    #expect(try #require(OSVersion.Range(outer)).covers(#require(OSVersion.Range(inner))) == covers)
  }

  @Test(arguments: [
    ("512MiB", 512 << 20), ("20GiB", 20 << 30), ("1K", 1024), ("1kB", 1000), ("2M", 2 << 20),
    ("2MB", 2_000_000), ("0", 0), ("17", 17), ("3 GiB", 3 << 30), ("5B", 5),
  ])
  func sizesHaveUnits(text: String, bytes: Int64) { #expect(Quantity.bytes(text) == bytes) }

  @Test(arguments: ["", "GiB", "-1", "1.5GiB", "1gib", "9999999999999TiB", "1 KiB x"])
  func invalidSizesAreRefused(text: String) { #expect(Quantity.bytes(text) == nil) }

  @Test(arguments: [
    ("31d", 2_678_400), ("0d", 0), ("12h", 43_200), ("15m", 900), ("45s", 45), ("2w", 1_209_600),
  ])
  func spansHaveUnits(text: String, seconds: Int64) { #expect(Quantity.seconds(text) == seconds) }

  @Test(arguments: ["", "31", "d", "1y", "1.5h", "99999999999999999w"])
  func invalidSpansAreRefused(text: String) { #expect(Quantity.seconds(text) == nil) }

  @Test func theMostRestrictiveDestinationApplies() {
    let disposition = BackupDisposition(.whenChanged, cloud: .never)
    #expect(disposition.mode() == .whenChanged)
    #expect(disposition.mode(for: Destination(isCloud: true)) == .never)
    #expect(disposition.mode(for: Destination(isUnencrypted: true)) == .whenChanged)
    #expect(disposition.mode(for: Destination(isCloud: true, isUnencrypted: true)) == .never)
    let loose = BackupDisposition(.never, cloud: .always)
    #expect(loose.mode(for: Destination(isCloud: true)) == .never)
  }

  @Test func dispositionsAreFormattedAsInFiles() {
    #expect(
      BackupDisposition(.always, unencrypted: .never).description
        == "{default: always, unencrypted: never}")
    #expect(BackupDisposition(.never, cloud: .never).description == "never")
    #expect(PurgeDisposition.anytime.description == "anytime")
    let terms = PurgeDisposition.Terms(order: 20, unit: .directory, action: .truncate)
    #expect(
      PurgeDisposition.allowed(terms).description
        == "{order: 20, when: under-pressure, unit: directory, action: truncate}")
  }

  @Test func freeSpaceIsAPercentageWithAMaximum() {
    #expect(Pressure.FreeSpace(percent: 10, atMost: 20).bytes(ofVolume: 1_000) == 20)
    #expect(Pressure.FreeSpace(percent: 10, atMost: 2_000).bytes(ofVolume: 1_050) == 105)
    #expect(Pressure.FreeSpace(percent: 10).bytes(ofVolume: Int64.max) == Int64.max / 10)
  }

  @Test func verdictsStaySmall() { #expect(MemoryLayout<Verdicts>.size <= 48) }
}
