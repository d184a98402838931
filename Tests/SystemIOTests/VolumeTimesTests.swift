import Glibc
import TestSupport
import Testing

@testable import SystemIO

/// How reliable file times are on each kind of volume, and how long they may change after a write.
struct VolumeTimesTests {
  @Test func timesInMemoryAreNotReliable() throws {
    guard try Mount.isPermitted() else { return }
    let directory = try TemporaryDirectory("times")
    let mount = try Mount(on: directory.directory, at: directory.path, "memory")
    #expect(try Directory.open(path: directory.path("memory")).volumeTimes() == .loose)
    #expect(try Directory.open(path: "/proc").volumeTimes() == .exact)
    withExtendedLifetime(mount) {}
  }

  /// The times of an overlay are as reliable as those of its least reliable layer.
  @Test func anOverlayIsAsReliableAsItsWorstLayer() throws {
    guard try Mount.isPermitted() else { return }
    let directory = try TemporaryDirectory("times")
    guard try directory.directory.volumeTimes() == .exact else { return }
    for name: ByteString in ["lower", "upper", "work", "merged"] {
      try directory.directory.createDirectory(name)
    }
    func times() throws -> VolumeTimes {
      let overlay = try Mount(overlayBelow: directory.path)
      defer { withExtendedLifetime(overlay) {} }
      return try Directory.open(path: directory.path("merged")).volumeTimes()
    }
    #expect(try times() == .exact)
    let memory = try Mount(inMemory: "size=1m", on: directory.path("lower"))
    #expect(try times() == .loose)
    withExtendedLifetime(memory) {}
  }

  @Test func aFileOpenForWritingHasAWriter() throws {
    let directory = try TemporaryDirectory("writers")
    try directory.write("text", at: "file")
    guard try directory.directory.file("file").hasNoWriter else { return }
    var map = UnsafeMutableRawPointer?.none
    do {
      let writer = try directory.directory.fileForWriting("file")
      #expect(try !directory.directory.file("file").hasNoWriter)
      withExtendedLifetime(writer) {}
    }
    let both = open(directory.path("file").description, O_RDWR)
    map = mmap(nil, 4, PROT_READ | PROT_WRITE, MAP_SHARED, both, 0)
    close(both)
    #expect(map != MAP_FAILED)
    #expect(try !directory.directory.file("file").hasNoWriter, "a mapping is a writer")
    munmap(map, 4)
    #expect(try directory.directory.file("file").hasNoWriter)
  }

  /// Files are opened for writing during the checks: no process is interrupted by a signal.
  @Test func checkingForWritersInterruptsNoProcess() throws {
    let directory = try TemporaryDirectory("writers")
    try directory.write("text", at: "file")
    let workers = try Workers(count: 2, capacity: 2, name: "writers")
    let path = directory.path("file").description
    let done = Counter()
    workers.submit {
      for _ in 0..<2000 {
        let writer = open(path, O_WRONLY)
        if writer >= 0 { done.add() }
        close(writer)
      }
    }
    let file = try directory.directory.file("file")
    for _ in 0..<2000 { _ = file.hasNoWriter }
    workers.finish()
    #expect(done.value == 2000)
  }

  @Test func theLayersOfAnOverlayAreFoundInTheMountTable() {
    let table = """
      22 1 254:1 / / rw - ext4 /dev/root rw
      61 22 0:52 / /other rw - overlay overlay rw,lowerdir=/wrong,upperdir=/wrong2
      60 22 0:51 / /m\\040x rw,relatime shared:1 master:2 - overlay overlay \
      rw,lowerdir=/a\\040b:/c\\134:d\\134,e:relative,upperdir=/up,workdir=/work,xino=off
      """
    let found = VolumeTimes.Layers.directories(of: 51, Array(table.utf8))
    #expect(found == ["/a b", "/c:d,e", "/up"])
    #expect(VolumeTimes.Layers.directories(of: 53, Array(table.utf8)).isEmpty)
  }

  @Test(arguments: [
    ("3000", "500", 60.0), ("60000", "500", 630), ("3000", "60000", 655), ("3000", "0", 86_400),
    ("0", "500", 60), ("", "", 60), ("x", "y", 60),
  ])
  func theWritebackDelayIsReadFromTheKernel(expire: String, wake: String, delay: Double) throws {
    let directory = try TemporaryDirectory("settings")
    try directory.write(expire + "\n", at: "dirty_expire_centisecs")
    try directory.write(wake + "\n", at: "dirty_writeback_centisecs")
    #expect(Host.writebackDelay(settings: directory.path) == delay)
    #expect(Host.writebackDelay(settings: directory.path("absent")) == 60)
  }
}
