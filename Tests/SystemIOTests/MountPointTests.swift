import SystemIO
import TestSupport
import Testing

/// The paths of mounts, with a made-up list of proc_pid_mountinfo(5).
struct MountPointTests {
  @Test func mountPointsAreDecoded() throws {
    let directory = try TemporaryDirectory("mounts")
    let table = """
      22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
      40 22 0:35 / /home/u/my\\040disk\\134x rw,nosuid - fuse.sshfs host:/ rw,user_id=1000
      short line

      """
    try directory.write(table, at: "mountinfo")
    let points = Host.mountPoints(table: directory.path("mountinfo"))
    #expect(points == ["/", "/home/u/my disk\\x"])
    #expect(Host.mountPoints(table: directory.path("absent")).isEmpty)
    #expect(Host.mountPoints().contains("/") || Host.mountPoints().isEmpty)
  }
}
