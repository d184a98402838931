import SystemIO
import TestSupport
import Testing

/// The comparison that the other tests rely on finds every difference.
struct ChangeDetectorTests {
  private static func twoTrees() throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory("comparison")
    try OddTree.make(in: directory, at: "one")
    let copy = try Program.run("cp", ["-a", "--sparse=always", "one", "two"], in: directory.url)
    #expect(copy.code == 0, "\(copy.errors)")
    return directory
  }

  @Test func equalTreesAreEqual() throws {
    let directory = try Self.twoTrees()
    try ChangeDetector.expectSame(directory, "one", "two")
    #expect(try OddTree.listing(directory, "one") == OddTree.listing(directory, "two"))
  }

  private static let changes = [
    "rm two/empty", "touch two/more", "chmod 600 two/empty", "touch -d @7 two/link -h",
    "touch -d @1000000000.123456788 two/folder",
    "printf X | dd of=two/media/large.bin conv=notrunc",
    "rm two/twin && cp -a two/large two/twin", "setfattr -x user.note two/large",
    "setfattr -n user.note -v other two/large", "setfattr -x system.posix_acl_access two/large",
    "ln -sfn folder/inner two/link", "rm two/fifo && touch two/fifo", "rmdir 'two/nothing in it'",
    "cp --sparse=never two/sparse two/full && mv two/full two/sparse && touch -r one/sparse two/sparse",
  ]

  /// In `make test` a sample of the changes.
  @Test(arguments: Sampling.some(of: changes, 4, "changes"))
  func changedTreesDiffer(_ change: String) throws {
    let directory = try Self.twoTrees()
    let outcome = try Program.run("/bin/bash", ["-ec", change], in: directory.url)
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try ChangeDetector.differences(directory, "one", "two") != "")
    #expect(try OddTree.listing(directory, "one") != OddTree.listing(directory, "two"))
  }

  @Test(.enabled(if: Shared.has(RealDevicePaths.material)))
  func listOfTheRealDeviceIsReadCompletely() throws {
    let paths = try RealDevicePaths.load()
    #expect(paths.count == 65_624)
    #expect(Set(paths).count == paths.count)
    #expect(paths.first == "Library/Wallpaper/DefaultWallpapers~iphone.plist")
    #expect(paths.last == "usr/bin/zprint")
    #expect(paths.filter { $0.bytes.contains(UInt8(ascii: ",")) }.count == 37)
  }
}
