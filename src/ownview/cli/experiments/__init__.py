"""Commands that measure: run, compare, blend, tune, bench, audit, attack, report, watch."""
