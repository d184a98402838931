// Scenario: tests of the life cycle of an app's data, as documents.
//
// A document (sandboxctl-scenario(5)) names a device, the versions of its platform, and steps:
// changes of the device, operations of this program, and expectations between them. This module
// reads the documents, checks expectations against facts, and writes the reports. It does not
// perform steps: a runner does that on a copy of the device, and supplies the facts.
//
// A document is untrusted input: its size, depth and counts are limited, and each mistake is
// reported with file, line and column.
//
// Not guaranteed: that the steps of a document without mistakes succeed on every device.

package import PolicyEngine
package import SandboxModel
package import SystemIO

/// A test of the life cycle of an app's data.
package struct ScenarioDocument: Sendable, Hashable {
  /// The name, unique among the documents of a run.
  package let name: String
  /// The purpose, or nil if none is given.
  package let description: String?
  /// The documents that promise the expected behavior.
  package let sources: [String]
  /// The device; the steps are performed on a copy of it.
  package let device: Device
  /// The versions of the platform, at least one; each of them is a separate run.
  package let versions: [Version]
  /// The steps in order, at least one.
  package let steps: [ScenarioStep]
  /// The position in the file.
  package let location: PolicyLocation

  /// The maximum size of a document in bytes.
  package static let maximumSize = 1 << 20
  /// The maximum number of steps, including those that `interrupt` contains.
  package static let maximumSteps = 500
  /// The maximum number of versions.
  package static let maximumVersions = 32
  /// The maximum number of patterns in all expectations together.
  package static let maximumPatterns = 2_000
  /// The maximum size of a file that a step writes, in bytes.
  package static let maximumContent: Int64 = 64 << 20
}

extension ScenarioDocument {
  /// The device of a scenario, which is never changed itself.
  package enum Device: Sendable, Hashable {
    /// The sample device of this program after some days of changes.
    case sample(day: Int)
    /// A directory: an absolute path, or one relative to the document's directory; and its layout,
    /// or nil to detect it.
    case root(ByteString, layout: Layout?)
  }

  /// A version of the platform.
  package struct Version: Sendable, Hashable {
    /// The name in reports: the version as written, or `now`.
    package let name: String
    /// The version, or nil for the newest one.
    package let osVersion: OSVersion?

    /// The newest version.
    package static let now = Version(name: "now", osVersion: nil)

    private init(name: String, osVersion: OSVersion?) {
      self.name = name
      self.osVersion = osVersion
    }

    /// Parses `now` or dotted numbers, or returns nil for other text.
    package init?(_ text: String) {
      if text == Self.now.name {
        self = .now
      } else if let version = OSVersion(text) {
        self.init(name: text, osVersion: version)
      } else {
        return nil
      }
    }
  }
}
