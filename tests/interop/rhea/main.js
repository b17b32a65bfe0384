// rhea against the broker. Arguments: parts of the names of the cases to run.
'use strict';

require('./messages');
require('./links');
require('./transactions');
require('./connections');
require('./harness').runAll(process.argv.slice(2));
