import AppPackages
import SystemIO
import Testing

struct AppVersionTests {
  private func version(_ text: ByteString, build: ByteString? = nil) -> AppVersion {
    AppVersion(version: text, build: build)
  }

  /// Each list is in ascending order; the versions in a string with spaces are equal.
  @Test(arguments: [
    [
      "128.0a1", "128.0b1", "128.0b1.5", "128.0b2.1", "128.0b10",
      "128.0 128 128.0.0 128.0esr", "128.0.1b1",
    ],
    ["1.0d1", "1.0a1", "1.0b1 1.0-beta1 1.0-BETA1", "1.0fc1", "1 1.0", "1.0.1"],
    ["1.0~git5", "1.0~beta2", "1.0~rc1 1.0-rc1 1.0_rc01", "1.0", "1.0+dfsg", "1.1~rc1", "1.1"],
    ["2.0.0-alpha", "2.0.0-alpha.1", "2.0.0-alpha.10", "2.0.0-beta", "2.0.0-rc.2", "2.0.0"],
    ["1.0.2", "1.0.2a", "1.0.2k", "1.0.3-dev", "1.0.3"],
    ["14A5", "14A300", "14B25", "14B25c", "14D1", "15A1"],
    ["5", "9 09", "10", "2147483648", "99999999999999999999"],
    ["130.0", "130.0-2", "130.0-10", "130.0.1"],
  ]) func versionsAreOrdered(_ list: [String]) {
    let ranked = list.enumerated().flatMap { rank, texts in
      texts.split(separator: " ").map { (rank, version(ByteString(String($0)))) }
    }
    for (left, own) in ranked {
      for (right, other) in ranked {
        #expect(own.isEarlier(than: other) == (left < right), "\(own.text), \(other.text)")
      }
    }
  }

  @Test func theBuildDecidesBetweenEqualVersions() {
    #expect(version("1.0", build: "9").isEarlier(than: version("1", build: "10")))
    #expect(!version("1.0", build: "9").isEarlier(than: version("1")))
    #expect(AppVersion(version: nil, build: "9").isEarlier(than: version("1", build: "10")))
    #expect(!version("1.1", build: "9").isEarlier(than: version("1.0", build: "10")))
  }
}
