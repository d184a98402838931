import AppPackages
import Migration
import SystemIO
import TestSupport
import Testing

/// The versions in dpkg's status file.
struct DebianPackagesTests {
  private func packages(_ text: String) -> DebianPackages {
    DebianPackages(parsing: Array(text.utf8))
  }

  private func paragraph(
    _ name: String, _ version: String, status: String = "install ok installed"
  ) -> String {
    """
    Package: \(name)
    Status: \(status)
    Priority: optional
    Version: \(version)
    Description: a program
     Version: 9 of its text
     .


    """
  }

  @Test(arguments: [
    ("1:128.5.0esr-1~deb12u1", "128.5.0"), ("3.0.21-0+deb12u1", "3.0.21"),
    ("2.10.34+dfsg1-1", "2.10.34"), ("7:5.1-2-3", "5.1"), ("4.", "4"), ("1.2~rc1-1", "1.2~rc1"),
    ("29.1+git20240102snapshot-1", "29.1"), ("128.0~b3-1~deb12u1", "128.0~b3"),
    ("128.0~deb12u1", "128.0"), ("128.0b3-1", "128.0b3"), ("1.0-beta1", "1.0-beta1"),
    ("1.0-beta1-2", "1.0-beta1"), ("2.0.0-rc.2", "2.0.0-rc.2"),
    ("2.0.0-beta.2-1.1", "2.0.0-beta.2"), ("1.0~rc1.", "1.0~rc1"), ("1.0-1ubuntu2", "1.0"),
  ]) func theUpstreamVersionIsRead(_ version: String, _ expected: String) {
    let found = packages(paragraph("app", version)).versions["app"]
    #expect(found == AppVersion(version: ByteString(expected), build: nil))
  }

  /// Packages of that version in Ubuntu only install a snap.
  @Test(arguments: ["1:1snap1-0ubuntu5", "2:1snap-1", "unknown", "1:", "-1"])
  func otherVersionsAreUnknown(_ version: String) {
    #expect(packages(paragraph("app", version)).versions.isEmpty)
  }

  @Test func onlyInstalledPackagesCount() {
    let text =
      paragraph("gone", "1", status: "deinstall ok config-files")
      + paragraph("half", "1", status: "install reinstreq half-installed")
      + paragraph("here", "1", status: "hold ok installed")
      + paragraph("busy", "2", status: "install ok triggers-pending")
      + paragraph("here", "3", status: "install ok installed")
    let versions = packages(text).versions
    #expect(Set(versions.keys) == ["here", "busy"])
    #expect(versions["here"] == AppVersion(version: "1", build: nil))
  }

  @Test func brokenFilesHaveNoPackages() {
    for text in ["", "\n\n\n", "Package:\nVersion:\nStatus:\n", "Version: 1\nStatus: installed\n"] {
      #expect(packages(text).versions.isEmpty, "\(text)")
    }
    // The last paragraph needs no empty line after it.
    #expect(packages("Package: a\nVersion: 1\nStatus: install ok installed").versions.count == 1)
  }

  @Test func theSystemIsTheNearestAboveTheHome() throws {
    let directory = try TemporaryDirectory("dpkg")
    try directory.write(paragraph("app", "1"), at: "disk/var/lib/dpkg/status")
    try directory.write(paragraph("app", "2"), at: "var/lib/dpkg/status")
    _ = try Directory.make(path: directory.path("disk/home/you"))
    let found = DebianPackages(ofHome: directory.path("disk/home/you"))
    #expect(found?.versions["app"] == AppVersion(version: "1", build: nil))
  }
}
