import SystemIO
import TestSupport
import Testing

/// What the times of files are worth, by volume, and how late they may be.
@Suite struct VolumeTimesTests {
  @Test func ofWhatLiesInMemoryNothing() throws {
    guard try Mount.isPermitted() else { return }
    let folder = try TemporaryFolder("times")
    let mount = try Mount(on: folder.folder, at: folder.path, "memory")
    #expect(try Folder.open(path: folder.path("memory")).volumeTimes() == .loose)
    #expect(try Folder.open(path: "/proc").volumeTimes() == .exact)
    withExtendedLifetime(mount) {}
  }

  @Test(arguments: [
    ("3000", "500", 60.0), ("60000", "500", 630), ("3000", "60000", 655), ("3000", "0", 86_400),
    ("0", "500", 60), ("", "", 60), ("x", "y", 60),
  ])
  func aStoreThroughAMappingMayShowLate(expire: String, wake: String, delay: Double) throws {
    let folder = try TemporaryFolder("settings")
    try folder.write(expire + "\n", at: "dirty_expire_centisecs")
    try folder.write(wake + "\n", at: "dirty_writeback_centisecs")
    #expect(Host.writebackDelay(settings: folder.path) == delay)
    #expect(Host.writebackDelay(settings: folder.path("absent")) == 60)
  }
}
