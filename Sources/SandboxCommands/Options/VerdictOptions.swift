internal import ArgumentParser
internal import PolicyEngine

/// The verdict to show.
struct VerdictOptions: ParsableArguments {
  @Option(
    name: .customLong("for"),
    help: ArgumentHelp(
      "The destination of the backup: cloud or unencrypted; may be repeated (default: a "
        + "local, encrypted repository).", valueName: "destination"))
  var destinations: [String] = []

  @Flag(help: "Show the platform's own decision instead of sandboxctl's.")
  var asPlatform = false

  /// The verdict's view.
  var view: Verdicts.View { asPlatform ? .platform : .keep }

  /// The destination of the backup.
  var destination: Destination {
    get throws {
      var destination = Destination()
      for word in destinations {
        switch word {
        case "cloud": destination.isCloud = true
        case "unencrypted": destination.isUnencrypted = true
        default:
          throw UsageError(
            "there is no destination '\(word)'", hint: "choose 'cloud' or 'unencrypted'")
        }
      }
      return destination
    }
  }
}
