internal import ArgumentParser
internal import SystemIO

/// A condition for a backup.
enum PowerState: String, CaseIterable, ExpressibleByArgument {
  /// The machine has mains power.
  case onMains = "on-ac"
}
